# SPDX-License-Identifier: BSD-3-Clause
"""Run the demo on two switches with a thin trunk: ``make demo-cluster``, as root.

Every host holds its shard of one layer of GPT-2 small, and an Allgather gives the
whole layer to all hosts, as FSDP does before it computes. The libraries take turns:
mpimcast, Open MPI and, where it is installed, MPICH. Every result is checked. The
switches are Linux bridges, the hosts network namespaces, and ``tc`` limits the rates.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from bench.jobs import contenders, job
from bench.jobs.contenders import CONTENDERS, TITLES, Contender
from bench.jobs.measurement import Measurement, Network
from bench.jobs.setup import Setup, Task
from bench.testbed import host
from bench.testbed.cluster import BURST_BYTES, Cluster
from mpimcast._settings.values import parse_size
from mpimcast.cli.demo import model

_TOOLS = ("ip", "tc", "unshare", "nsenter", "sysctl")
_LAYER = "h.0"
_RATE_MBIT, _TRUNK_MBIT = 200, 100
_NHOSTS, _NHOSTS_MAX = 8, 32
_BAR_CHARACTERS = 20


class Plan(NamedTuple):
    """The demo's measurement: its hosts, block size, repetitions and contenders.

    Attributes
    ----------
    nhosts : int
        The number of hosts, which is even; each switch has half of them.
    block_bytes : int
        The size of each rank's shard.
    iterations : int
        The number of measured Allgathers of each contender in each order.
    contenders : sequence of Contender
        The contenders that take part.
    """

    nhosts: int
    block_bytes: int
    iterations: int
    contenders: Sequence[Contender]


class Row(NamedTuple):
    """The costs of one contender's Allgather, in one order of the ranks.

    Attributes
    ----------
    order : str
        ``"block"`` or ``"interleaved"``.
    contender : str
        A name of bench.jobs.contenders.
    seconds : float
        The median time, from the last rank's start to the last rank's end.
    trunk_bytes : int
        The bytes that crossed the trunk in its busier direction, with headers.
    wrong_bytes : int
        The number of wrong bytes on all ranks together.
    """

    order: str
    contender: str
    seconds: float
    trunk_bytes: int
    wrong_bytes: int


def orders(nhosts: int) -> dict[str, list[int]]:
    """Return both orders of ranks by name; an order has the number of each rank's host.

    The first half of the hosts is on one switch, the other half on the other.
    """
    half = nhosts // 2
    pairs = zip(range(half), range(half, nhosts), strict=True)
    return {
        "block": list(range(nhosts)),
        "interleaved": [number for pair in pairs for number in pair],
    }


def measure(plan: Plan) -> Iterator[Row]:
    """Gather the layer in both orders with all contenders; yield the costs of each."""
    network = Network("cluster", 2, _RATE_MBIT, _TRUNK_MBIT, BURST_BYTES)
    task = Task("Allgather", plan.block_bytes, plan.iterations)
    with Cluster(plan.nhosts, two_switches=True) as cluster:
        cluster.shape(_RATE_MBIT, trunk_mbit=_TRUNK_MBIT)
        for order, numbers in orders(plan.nhosts).items():
            setup = Setup(replace(network, order=order), numbers, cluster)
            for contender in plan.contenders:
                (measurement,) = job.run("demo", setup, contender, [task])
                yield _row(order, measurement)


def _row(order: str, measurement: Measurement) -> Row:
    """Return the costs of one Allgather, from a measurement of several."""
    trunk_bytes = [
        port["sent_bytes"]
        for name, port in measurement.ports.items()
        if name.startswith("trunk")
    ]
    return Row(
        order,
        measurement.contender,
        statistics.median(measurement.seconds),
        max(trunk_bytes) // len(measurement.seconds),
        measurement.wrong_bytes,
    )


# ---- what is printed ---------------------------------------------------------


def picture(plan: Plan) -> str:
    """Return a drawing of the network in characters, with its rates."""
    half = plan.nhosts // 2
    trunk = f"trunk, {_TRUNK_MBIT} Mbit/s"
    return (
        f"  {half} hosts ===[ switch ]--- {trunk} ---[ switch ]=== {half} hosts\n"
        f"  links of {_RATE_MBIT} Mbit/s; a rank on every host, with "
        f"{plan.block_bytes:,} bytes"
    )


def table(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the table's lines.

    In each order of the ranks, the other contenders are compared with the first.
    """
    most_bytes = max(row.trunk_bytes for row in rows)
    yield f"{'':30}seconds          MB over the trunk, each way"
    for order in dict.fromkeys(row.order for row in rows):
        yield _TITLES[order]
        first, *others = (row for row in rows if row.order == order)
        yield _line(first, "", "", most_bytes)
        for row in others:
            longer = f"{row.seconds / first.seconds:.1f} x"
            more = f"{row.trunk_bytes / first.trunk_bytes:.1f} x"
            yield _line(row, longer, more, most_bytes)


def _line(row: Row, longer: str, more: str, most_bytes: int) -> str:
    """Return a contender's line, whose bar is full at `most_bytes` over the trunk.

    `longer` and `more` compare its time and its bytes with the first contender's.
    """
    bar = "#" * max(1, round(_BAR_CHARACTERS * row.trunk_bytes / most_bytes))
    return (
        f"  {TITLES[row.contender]:27}{row.seconds:8.2f} {longer:>6}"
        f"{row.trunk_bytes / 1e6:10.1f} {more:>6}  {bar}"
    )


_TITLES = {
    "block": "ranks in the order of the switches",
    "interleaved": "ranks alternate between the switches",
}


# ---- the command -------------------------------------------------------------


def main() -> int:
    """Run the demo; return 1 if it cannot run or a byte is wrong."""
    options = _parser().parse_args()
    if sentence := why_unavailable():
        print(f"make demo-cluster: {sentence}", file=sys.stderr)
        return 1
    plan = _plan(options)
    nbytes = plan.block_bytes * plan.nhosts
    print(f"Allgather of {nbytes:,} bytes on {plan.nhosts} hosts:\n\n{picture(plan)}\n")
    sys.stdout.flush()
    try:
        return _show(plan)
    except KeyboardInterrupt:
        print("interrupted; no process and no namespace is left", file=sys.stderr)
        return 130


def _show(plan: Plan) -> int:
    """Measure, then print the table; return the exit status."""
    rows: list[Row] = []
    for row in measure(plan):
        rows.append(row)
        said = f"{_TITLES[row.order]}, {TITLES[row.contender]}: {row.seconds:.2f} s"
        print(said, file=sys.stderr)
    print("\n".join(table(rows)))
    wrong_bytes = sum(row.wrong_bytes for row in rows)
    print(f"WRONG BYTES: {wrong_bytes}" if wrong_bytes else "every byte is right")
    return 1 if wrong_bytes else 0


def why_unavailable() -> str:
    """Return a sentence that says why the demo cannot run; empty if it can."""
    missing = [tool for tool in _TOOLS if shutil.which(tool) is None]
    if missing:
        tools = ", ".join(missing)
        return f"it needs {tools}; run: apt install iproute2 util-linux procps"
    if os.geteuid() != 0:
        return "it has to be run as root, to create network namespaces"
    return host.why_unavailable()


def _plan(options: argparse.Namespace) -> Plan:
    """Return the plan that the options ask for.

    By default all installed contenders take part. If no size is given, the layer is
    divided among the hosts.
    """
    chosen = options.contenders or [
        CONTENDERS[name]
        for name in ("mpimcast", "openmpi", "openmpi-tuned", "mpich")
        if CONTENDERS[name].is_installed
    ]
    layer = next(each for each in model.gpt2_small(0) if each.name == _LAYER)
    block_bytes = options.block or -(-layer.nbytes // options.hosts)
    return Plan(options.hosts, block_bytes, options.iterations, chosen)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.demo", description=__doc__)
    parser.add_argument(
        "--hosts",
        type=int,
        choices=range(2, _NHOSTS_MAX + 1, 2),
        default=_NHOSTS,
        metavar="N",
        help=f"the number of hosts, even, up to {_NHOSTS_MAX} (default: %(default)s)",
    )
    parser.add_argument(
        "--block",
        type=parse_size,
        metavar="BYTES",
        help="the size of each rank's shard (default: the layer's, divided by the "
        "number of hosts)",
    )
    parser.add_argument(
        "--iterations",
        type=int,
        default=2,
        metavar="N",
        help="how often each contender is measured in each order (default: "
        "%(default)s)",
    )
    contenders.add_option(
        parser, "the others are compared with the first (default: those installed)"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
