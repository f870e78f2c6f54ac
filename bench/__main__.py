# SPDX-License-Identifier: BSD-3-Clause
"""Measure cells, then write a report: ``python -m bench [CELL ...]``, as root.

Each measurement is written to a file as soon as it is complete, so that an interrupted
run loses none of them. A further run into the same folder adds rounds.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from dataclasses import replace
from pathlib import Path

from bench.cells import report
from bench.cells.cells import CELLS
from bench.cells.effort import Effort
from bench.cells.scenario import scenario_of
from bench.jobs import contenders
from bench.jobs.contenders import ROOT
from bench.jobs.measurement import Measurement, read
from bench.page.units import size
from bench.testbed import host


def main() -> int:
    """Measure cells and write the report; return 1 if any byte is wrong."""
    parser = _parser()
    options = parser.parse_args()
    names = [name.upper() for name in options.cells] or list(CELLS)
    if unknown := sorted(set(names) - set(CELLS)):
        cells = ", ".join(CELLS)
        parser.error(f"there is no cell {', '.join(unknown)}; there are {cells}")
    if reason := host.why_unavailable():
        parser.error(reason)
    effort = Effort(
        options.rounds,
        options.task_s,
        options.iterations,
        options.contenders or contenders.installed(),
        options.only,
    )
    options.out.mkdir(parents=True, exist_ok=True)
    print("# cell, round, contender, median time, scenario, block")
    status = 0
    for name in names:
        begin_s = time.monotonic()
        path = options.out / f"{name}.jsonl"
        earlier = read([path]) if path.exists() else ()
        first = max((1 + measurement.round for measurement in earlier), default=0)
        with path.open("a", encoding="utf-8") as out:
            for measurement in CELLS[name].measure(replace(effort, first_round=first)):
                out.write(measurement.line() + "\n")
                out.flush()
                print(_line(measurement), flush=True)
                status |= measurement.wrong_bytes > 0
        print(f"# cell {name} took {time.monotonic() - begin_s:.0f} s", flush=True)
    print(report.write(options.out))
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    cells = "; ".join(f"{name}: {cell.title}" for name, cell in CELLS.items())
    parser.add_argument(
        "cells", nargs="*", metavar="CELL", help=f"{cells} (default: all)"
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=ROOT / "build/bench",
        metavar="DIR",
        help="folder for the measurements and the report (default: build/bench)",
    )
    parser.add_argument(
        "--rounds",
        type=int,
        default=Effort.rounds,
        metavar="N",
        help="how many turns each contender takes (default: %(default)s)",
    )
    parser.add_argument(
        "--iterations",
        type=int,
        default=Effort.iterations,
        metavar="N",
        help="the greatest number of operations of one size in one job "
        "(default: %(default)s)",
    )
    parser.add_argument(
        "--task-s",
        type=float,
        default=Effort.task_s,
        metavar="SECONDS",
        help="choose as many operations of one size in one job as would take this time "
        "at the links' rates (default: %(default)s)",
    )
    contenders.add_option(parser, "default: all that are installed")
    parser.add_argument(
        "--only",
        default="",
        metavar="COLLECTIVE",
        help="measure this collective alone, such as Bcast (default: all)",
    )
    return parser


def _line(measurement: Measurement) -> str:
    """Return a line that says what was measured, with the median time."""
    time_ms = 1e3 * statistics.median(measurement.seconds)
    wrong_bytes = measurement.wrong_bytes
    wrong = f", WRONG BYTES: {wrong_bytes}" if wrong_bytes else ""
    return (
        f"{measurement.cell} {measurement.round} {measurement.contender:14} "
        f"{time_ms:10.3f} ms  {scenario_of(measurement).title()}, "
        f"{size(measurement.block_bytes)}{wrong}"
    )


if __name__ == "__main__":
    sys.exit(main())
