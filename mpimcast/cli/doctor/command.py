# SPDX-License-Identifier: BSD-3-Clause
"""``python -m mpimcast doctor``: find the nodes that break collectives, and why.

Run it under mpirun or srun, with the ranks and on the nodes of your next job; alone it
checks this node. Every finding names the node, what is wrong there, and a command
that fixes it or shows more. Notes do not affect the exit status. ``doctor security
--help`` says how to watch a network for attacks on jobs.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from typing import TYPE_CHECKING

from mpimcast._mpi.library import LibraryError, load
from mpimcast.cli import arguments, commands, terminal
from mpimcast.cli.doctor import security
from mpimcast.cli.doctor.finding import STATUSES, Finding
from mpimcast.cli.doctor.guard import run_guarded
from mpimcast.cli.doctor.report import Report
from mpimcast.cli.doctor.start import find_start
from mpimcast.cli.node import node_name
from mpimcast.errors import TimedOut

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from mpimcast.cli.doctor.start import Start


CHECKS = ("launch", "nodes", "multicast", "control", "reads", "mtu", "bandwidth")

_LIMIT_S = 60.0
_LIMIT_S_MIN = 0.1
_LIMIT_S_MAX = 3600.0

# The time left for reporting after the time for checking has run out.
_TELLING_S = 5.0

# The time for one of many singletons to report.
_SAYING_S = 1.0


def main(argv: list[str]) -> int:
    """Run the checks, report on one rank, and return the exit status."""
    if argv[:1] == [security.NAME]:
        return security.main(argv[1:])
    options = _parser().parse_args(argv)
    began_s = time.monotonic()
    start = find_start(os.environ)
    report = Report(
        started=began_s, checks=_asked(options.checks), watched=terminal.is_watched()
    )
    sys.stdout.flush()
    if not run_guarded(options.limit + _TELLING_S):
        report.add([_overdue(start, options.limit)])
        return _tell(report, options.json, shown=start.rank == 0)
    try:
        load()
    except LibraryError as error:
        report.add([_without_library(error)])
        if start.rank:
            print(f"rank {start.rank} on {node_name()}: {error}", file=sys.stderr)
        return _tell(report, options.json, shown=start.rank == 0)
    from mpimcast.cli.doctor import checkup

    wrong = checkup.check_world(report, start)
    if wrong:
        if start.rank:
            # The first process to fail may end the others, so the rest let rank 0
            # report first. Without a common MPI world it cannot tell them when it has.
            time.sleep(_SAYING_S)
        return _tell(report, options.json, shown=start.rank == 0)
    try:
        world = checkup.check(report, began_s + options.limit)
        status = _tell(report, options.json, shown=world.rank == 0)
        world.part()
    except TimedOut:
        # MPI.Finalize would wait for the missing ranks. The guard ends this process.
        if start.rank:
            signal.pause()
        os._exit(_tell(report, options.json, shown=True))
    return status


def _without_library(error: LibraryError) -> Finding:
    mend = "python -m mpimcast info, on every node"
    return Finding(node_name(), "launch", "unusable", str(error), mend)


def _overdue(start: Start, limit_s: float) -> Finding:
    """Return the finding that this process has hung in a call of MPI."""
    return Finding(
        "",
        "launch",
        "unusable",
        f"rank {start.rank} has waited for {limit_s:g} s in an MPI call, possibly its "
        "first",
        "check that all ranks start, and that a small MPI program ends; then try half "
        "of the nodes",
    )


def _tell(report: Report, path: str | None, *, shown: bool) -> int:
    """Show the report if `shown`; return the exit status."""
    if shown:
        try:
            report.show(path)
        except OSError as error:
            print(f"mpimcast doctor: {error}", file=sys.stderr)
    sys.stdout.flush()
    return STATUSES[report.verdict]


def _asked(checks: Sequence[str]) -> tuple[str, ...]:
    """Return the checks to run, in order; the first always, since others need it."""
    return tuple(
        name for name in CHECKS if not checks or name in checks or name == CHECKS[0]
    )


def _parser() -> argparse.ArgumentParser:
    parser = commands.parser("doctor", __doc__)
    parser.add_argument(
        "checks",
        nargs="*",
        type=arguments.names("check", CHECKS),
        metavar="CHECK",
        help=f"{', '.join(CHECKS)} (default: all)",
    )
    parser.add_argument(
        "--json",
        metavar="PATH",
        help="also write everything to this file, or with - to standard output instead "
        "of the table",
    )
    parser.add_argument(
        "--limit",
        type=arguments.seconds(_LIMIT_S_MIN, _LIMIT_S_MAX, example="60"),
        default=_LIMIT_S,
        metavar="SECONDS",
        help="time limit of all checks together (default: %(default)g)",
    )
    return parser
