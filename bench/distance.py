# SPDX-License-Identifier: BSD-3-Clause
"""Measure messages and collectives between distant hosts: ``python -m bench.distance``.

Links are long and lose frames, as between sites (testbed/distance.py). mpimcast repairs
by each way that it has (RELIABILITY), with a window of twice bandwidth times round
trip. Beside it are TCP connections, and Open MPI over them, by each congestion control
that the kernel has. Contenders take turns, and in one round meet the same losses. This
needs root.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np

from bench.jobs import job
from bench.jobs.contenders import OPENMPI, Contender
from bench.jobs.measurement import Measurement, Network
from bench.jobs.payload import MESSAGE, MESSAGES, POSTED
from bench.jobs.setup import Setup, Task
from bench.page.units import ms, size
from bench.testbed import host
from bench.testbed.cluster import SINGLE_BURST_BYTES
from bench.testbed.distance import Distance, DistantCluster, congestion_controls
from mpimcast._settings.values import parse_size
from mpimcast.cli.arguments import names

RELIABILITIES = ("repeat", "code", "auto")
CONTROLS = ("reno", "bbr")
COLLECTIVES = (MESSAGE, "Bcast", "Allgather")
OURS = "repeat"  # what the others are compared with

_HEADS = (
    "what",
    "P",
    "size",
    "link",
    "contender",
    "p50",
    "p99",
    "repeat : p50",
    "repeat : p99",
)
_QUEUE_BYTES_MIN = 512 << 10

_Value = TypeVar("_Value")


class Case(NamedTuple):
    """One collective of one size over one kind of link."""

    collective: str
    nranks: int
    nbytes: int
    rate_mbit: int
    distance: Distance

    @property
    def product_bytes(self) -> int:
        """The product of bandwidth and round trip."""
        return round(self.rate_mbit * 125 * self.distance.round_trip_ms)

    def words(self) -> tuple[str, ...]:
        """Return the cells of the table that name this case."""
        far, period = self.distance, self.distance.loss_period
        link = f"{self.rate_mbit} Mbit/s, {far.round_trip_ms:g} ms, {far.loss:g}"
        if period > 1:
            link += f" in periods of {period}"
        return self.collective, str(self.nranks), size(self.nbytes), link


def contenders() -> dict[str, Contender]:
    """Return those that can take part here, by name."""
    ours = {
        name: Contender(
            name,
            f"mpimcast, RELIABILITY={name}",
            OPENMPI,
            ours=True,
            variables={"MPIMCAST_PROTECT": "off", "MPIMCAST_RELIABILITY": name},
        )
        for name in RELIABILITIES
    }
    available = congestion_controls()
    tcp = {
        name: Contender(name, f"TCP, {name}", OPENMPI)
        for name in CONTROLS
        if name in available
    }
    return ours | tcp


def measure(
    cluster: DistantCluster, case: Case, contender: Contender, iterations: int
) -> Measurement:
    """Run a contender's job, and return its measurement."""
    window = {"MPIMCAST_WINDOW_BYTES": str(max(2 * case.product_bytes, 1 << 20))}
    if contender.name in CONTROLS:
        cluster.use_congestion_control(contender.name)
    else:
        contender = dataclasses.replace(
            contender, variables={**contender.variables, **window}
        )
    distance = case.distance
    setup = Setup(
        Network(
            "cluster",
            rate_mbit=case.rate_mbit,
            burst_bytes=SINGLE_BURST_BYTES,
            loss=distance.loss,
            round_trip_ms=distance.round_trip_ms,
            loss_period=distance.loss_period,
        ),
        range(case.nranks),
        cluster,
    )
    task = Task(case.collective, case.nbytes, iterations)
    with cluster.apart(distance) as crossing:
        (found,) = job.run("distance", setup, contender, [task], distance.seed)
    for each in cluster.hosts:
        each.end_processes()
    lost = {
        "frames": sum(each.lost for each in crossing.hosts),
        "overflowed": sum(each.overflowed for each in crossing.hosts),
    }
    return dataclasses.replace(found, lost=lost)


def rows(
    case: Case, found: dict[str, list[float]], overflowed: int
) -> Iterator[tuple[str, ...]]:
    """Yield the lines of a case: each contender's quantiles, and OURS by them."""
    quantiles = {
        name: [float(np.quantile(s, q, method="higher")) for q in (0.5, 0.99)]
        for name, s in found.items()
    }
    base = quantiles.get(OURS)
    for name, values in quantiles.items():
        ratios = [f"{b / v:.2f}" for b, v in zip(base or (), values, strict=bool(base))]
        yield (
            *case.words(),
            name + ("" if overflowed == 0 else f" ({overflowed} overflowed)"),
            *map(ms, values),
            *(ratios or ("", "")),
        )


def cases(options: argparse.Namespace, collective: str) -> Iterator[Case]:
    """Yield the cases of a collective, from the shortest links on."""
    for rate_mbit in options.rates:
        for round_trip_ms in options.round_trips:
            for loss in options.losses:
                distance = Distance(round_trip_ms, loss, options.loss_period)
                for nbytes in options.sizes:
                    for nranks in options.ranks:
                        if collective not in MESSAGES or nranks == 2:
                            yield Case(collective, nranks, nbytes, rate_mbit, distance)


def run(
    cluster: DistantCluster, case: Case, options: argparse.Namespace
) -> Iterator[Measurement]:
    """Yield the measurements of a case, of which contenders take turns."""
    cluster.shape(
        case.rate_mbit,
        burst_bytes=SINGLE_BURST_BYTES,
        queue_bytes=max(case.product_bytes, _QUEUE_BYTES_MIN),
    )
    chosen = contenders()
    for seed in range(1, options.rounds + 1):
        turn = case._replace(distance=dataclasses.replace(case.distance, seed=seed))
        for name, contender in chosen.items():
            if not options.contenders or name in options.contenders:
                try:
                    yield measure(cluster, turn, contender, options.iterations)
                except RuntimeError as error:
                    print(f"{name} has failed: {error}", file=sys.stderr)


def _list(parse: Callable[[str], _Value]) -> Callable[[str], list[_Value]]:
    """Return a parser of comma-separated values, each of which `parse` takes."""
    return lambda text: [parse(each) for each in text.split(",")]


def arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    add = parser.add_argument
    collective = names("collective", (*COLLECTIVES, POSTED))
    contender = names("contender", (*RELIABILITIES, *CONTROLS))
    add("--collectives", type=_list(collective), default=COLLECTIVES)
    add("--ranks", type=_list(int), default=[2, 8])
    add("--sizes", type=_list(parse_size), default=[64 << 10, 1 << 20, 3 << 20])
    add("--rates", type=_list(int), default=[100], help="in Mbit/s")
    add("--round-trips", type=_list(float), default=[1, 25, 50], help="in ms")
    add("--losses", type=_list(float), default=[1e-5, 1e-3, 1e-2])
    add("--loss-period", type=int, default=1, help="frames lost in a row, on average")
    add("--contenders", type=_list(contender), default=[])
    add("--iterations", type=int, default=100)
    add("--rounds", type=int, default=1)
    add("--out", type=Path, help="append the measurements to this file")
    return parser.parse_args(argv)


def main() -> None:
    """Measure all cases, and print a table line by line."""
    options = arguments()
    if why := host.why_unavailable():
        sys.exit(f"bench.distance: {why}")
    print(f"| {' | '.join(_HEADS)} |\n|{'---|' * len(_HEADS)}", flush=True)
    with contextlib.ExitStack() as stack:
        cluster = stack.enter_context(DistantCluster(max(options.ranks)))
        for collective in options.collectives:
            for case in cases(options, collective):
                found: dict[str, list[float]] = defaultdict(list)
                overflowed = 0
                for each in run(cluster, case, options):
                    found[each.contender] += each.seconds
                    overflowed += each.lost["overflowed"]
                    if options.out:
                        with options.out.open("a", encoding="utf-8") as out:
                            print(each.line(), file=out)
                for row in rows(case, found, overflowed):
                    print(f"| {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main()
