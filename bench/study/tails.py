# SPDX-License-Identifier: BSD-3-Clause
"""Compare the slowest of a thousand operations by repetition and by codes."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path

import numpy as np

from bench.page.units import size
from bench.study.case import Case, Chapter, Numbers, Results, Table
from bench.study.codes import KIB, MIB, broadcast, loss_words, named
from bench.study.rule import CODES, REPEAT, Link
from mpimcast.cli.sim.figures import percentile

_NSEEDS = 1000
_THOUSANDTHS = 999
_MBITS = 1000
_TRIPS_US = (10, 1000, 25_000, 100_000)
_LOSSES_PPM = (100, 1000, 10_000)
_FAR_US = (1000, 25_000)
_LONG = 8  # datagrams lost in a row, as a mean
# Ranks, sizes, round trips, and how many datagrams are lost in a row.
_KINDS = (
    ((2,), (64 * KIB, MIB), _TRIPS_US, 1),
    ((2,), (3 * MIB,), _FAR_US, 1),
    ((16,), (64 * KIB,), _TRIPS_US, 1),
    ((188,), (64 * KIB,), _FAR_US, 1),
    ((2,), (64 * KIB, MIB), _FAR_US, _LONG),
    ((16,), (64 * KIB,), _FAR_US, _LONG),
)


def _links() -> Iterator[tuple[Link, int]]:
    """Yield each link, and how many datagrams it loses in a row."""
    for *kind, period in _KINDS:
        for nranks, nbytes, trip_us, loss_ppm in product(*kind, _LOSSES_PPM):
            yield Link(nranks, nbytes, _MBITS, trip_us, loss_ppm), period


def cases() -> Iterator[Case]:
    """Yield a case for each link."""
    for link, period in _links():
        yield Case(named(link, period), (link, period))


def measure(link: Link, period: int) -> Numbers:
    """Send one Bcast with each code and each seed."""
    found: Numbers = {}
    for name, code in CODES.items():
        times = np.array(
            [
                broadcast(link, code, seed, loss_period=period)["time_ns"]
                for seed in range(1, _NSEEDS + 1)
            ]
        )
        found[f"{name} mean_ns"] = int(times.sum()) // _NSEEDS
        found[f"{name} tail_ns"] = percentile(times, _THOUSANDTHS)
    return found


def _row(results: Results, link: Link, period: int) -> list[str]:
    found = results[named(link, period)]
    return [
        *(str(link.nranks), size(link.nbytes), f"{link.trip_us / 1000:g}"),
        loss_words(link, period),
        *(f"{found[f'{code} mean_ns'] / 1e6:.2f}" for code in CODES),
        *(f"{found[f'{code} tail_ns'] / 1e6:.1f}" for code in CODES),
    ]


def _gains(results: Results, key: str) -> dict[tuple[Link, int], float]:
    """Return what the best code gains over repetition, by link."""
    gains = {}
    for link, period in _links():
        found = results[named(link, period)]
        least = min(found[f"{code} {key}"] for code in CODES if code != REPEAT)
        gains[link, period] = found[f"{REPEAT} {key}"] / least
    return gains


def chapter(results: Results, _folder: Path) -> Chapter:
    """Return the chapter, with a line for each link."""
    tails = _gains(results, "tail_ns")
    independent = [gain for (_, period), gain in tails.items() if period == 1]
    in_runs = [gain for (_, period), gain in tails.items() if period > 1]
    return Chapter(
        "Tails, and losses in runs",
        [
            (
                f"Each of {_NSEEDS} operations is the first of its job, and has a seed "
                "of its own. Repetition's p99.9 is that of the best code times "
                f"{min(independent):.2f} to {max(independent):.2f}, with the median "
                f"{np.median(independent):.2f}. Where {_LONG} datagrams are lost in a "
                f"row, as a mean, it is {min(in_runs):.2f} to {max(in_runs):.2f} times "
                f"that, with the median {np.median(in_runs):.2f}. A run is counted in "
                "datagrams, so one that begins when hardly any are sent lasts long."
            )
        ],
        [
            Table(
                f"Means and p99.9 of {_NSEEDS} seeds in ms, at {_MBITS} Mbit/s.",
                [
                    *("ranks", "size", "round trip, ms", "loss"),
                    *(f"mean, {code}" for code in CODES),
                    *(f"p99.9, {code}" for code in CODES),
                ],
                [_row(results, *each) for each in _links()],
            )
        ],
        [],
    )
