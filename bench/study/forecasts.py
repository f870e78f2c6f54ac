# SPDX-License-Identifier: BSD-3-Clause
"""Compare RELIABILITY=auto, which learns as it goes, with repetition and a code."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path

from bench.page.units import size
from bench.study.case import Case, Chapter, Numbers, Results, Table
from bench.study.codes import KIB, MIB, broadcast, loss_words, named
from bench.study.rule import CHUNK_BYTES, CODES, REPEAT, Link

_CODE, _AUTO = "32,4", "auto"
_WAYS = {
    REPEAT: (CODES[REPEAT], False),
    _CODE: (CODES[_CODE], False),
    _AUTO: (CODES[_CODE], True),
}

_NOPS = 20
_NSEEDS = 3
_TRIPS_US = (10, 1000, 25_000)
_LOSSES_PPM = (0, 10, 100, 1000, 10_000)
_SIZES = (64 * KIB, MIB, 3 * MIB)
# By ranks and Mbit/s, the sizes that the time allows, and how many datagrams are lost
# in a row, as a mean.
_SLOW, _FAST = CHUNK_BYTES
_KINDS = {
    (2, _SLOW): (_SIZES, (1, 8)),
    (16, _SLOW): (_SIZES, (1,)),
    (188, _SLOW): (_SIZES[:1], (1,)),
    (2, _FAST): (_SIZES[::2], (1,)),
    (16, _FAST): (_SIZES[::2], (1,)),
}
_LIMIT = 1.05  # by how much auto may take longer than the better of the others


def _links() -> Iterator[tuple[Link, int]]:
    """Yield each link, and the mean number of datagrams that it loses in a row."""
    for (nranks, mbits), (sizes, periods) in _KINDS.items():
        for nbytes, trip_us, loss_ppm, period in product(
            sizes, _TRIPS_US, _LOSSES_PPM, periods
        ):
            if loss_ppm > 0 or period == 1:
                yield Link(nranks, nbytes, mbits, trip_us, loss_ppm), period


def cases() -> Iterator[Case]:
    """Yield a case for each link."""
    for link, period in _links():
        quick = (*link[:3], period) == (2, 64 * KIB, _SLOW, 1)
        yield Case(named(link, period), (link, period), quick)


def measure(link: Link, period: int) -> Numbers:
    """Send Bcasts one after the other in each way, and add their times."""
    found: Numbers = {}
    for way, (code, forecasts) in _WAYS.items():
        results = [
            broadcast(
                link, code, seed, nops=_NOPS, code_auto=forecasts, loss_period=period
            )
            for seed in range(1, _NSEEDS + 1)
        ]
        found[f"{way} time_ns"] = sum(result["time_ns"] for result in results)
        found[f"{way} parity"] = sum(
            rank["parity_sent"] for result in results for rank in result["ranks"]
        )
    return found


def _ratio(found: Numbers) -> float:
    """Return auto's time divided by the shorter one of the other ways."""
    others = (found[f"{way} time_ns"] for way in (REPEAT, _CODE))
    return found[f"{_AUTO} time_ns"] / min(others)


def _row(results: Results, link: Link, period: int) -> list[str]:
    found = results[named(link, period)]
    times = (found[f"{way} time_ns"] / _NSEEDS / _NOPS / 1e6 for way in _WAYS)
    return [
        *(str(link.nranks), size(link.nbytes), f"{link.mbits // 1000}"),
        f"{link.trip_us / 1000:g}",
        loss_words(link, period),
        *(f"{time:.3f}" for time in times),
        f"{_ratio(found):.2f}",
    ]


def chapter(results: Results, _folder: Path) -> Chapter:
    """Return the chapter, with a line for each link."""
    ratios = [_ratio(results[named(*each)]) for each in _links()]
    over = sum(ratio > _LIMIT for ratio in ratios)
    heads = ("ranks", "size", "Gbit/s", "round trip, ms", "loss")
    return Chapter(
        "What RELIABILITY=auto makes of it",
        [
            (
                f"Rank 0 sends {_NOPS} times, one after the other, as above. At the "
                "beginning nobody knows what is lost, nor how far the others are, so "
                "what it takes auto to learn that is part of its time. It takes "
                f"{max(ratios):.2f} times as long as the better of the others where "
                f"it is worst, {sum(ratios) / len(ratios):.3f} times as a mean, and "
                f"more than {_LIMIT} times on {over} of {len(ratios)} links. Where it "
                "is faster than both it sends less parity than the code."
            )
        ],
        [
            Table(
                f"Times in ms, means of {_NSEEDS} seeds; auto has CODE={_CODE}, too.",
                [*heads, *_WAYS, "auto : better one"],
                [_row(results, *each) for each in _links()],
            )
        ],
        [],
    )
