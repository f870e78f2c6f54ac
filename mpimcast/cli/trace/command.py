# SPDX-License-Identifier: BSD-3-Clause
"""``python -m mpimcast trace``: who made whom wait, and a picture of that.

A job that runs with ``MPIMCAST_TRACE=DIR`` leaves a file of each process in DIR. This
command puts them on one clock, writes a trace for ui.perfetto.dev, and prints who made
whom wait. If DIR holds the files of several jobs, the latest is taken. What
torch.profiler.tensorboard_trace_handler(DIR) has left there is shown, too.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpimcast.cli import arguments, commands
from mpimcast.cli.trace import clocks, job, perfetto, profiles, table, waits

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

_OUT = "trace.json"


def main(argv: Sequence[str] | None = None) -> int:
    """Merge traces; return the exit status."""
    options = _parser().parse_args(argv)
    folder = Path(options.dir)
    if not folder.is_dir():
        print(f"mpimcast trace: {folder} is no directory", file=sys.stderr)
        return 1
    found = job.load(folder)
    profiled = profiles.load(folder, found.traces)
    found.bad.extend(profiled.bad)
    for why in found.bad:
        print(f"mpimcast trace: {why}", file=sys.stderr)
    if not found.traces:
        print(
            f"mpimcast trace: {folder} has no trace that can be read; a job writes "
            f"them with MPIMCAST_TRACE={folder}",
            file=sys.stderr,
        )
        return 1
    shifts = clocks.align([each.header for each in found.traces])
    out = Path(options.out or folder / _OUT)
    try:
        with out.open("w", encoding="ascii") as file:
            perfetto.write(found, shifts, file, profiled.slices)
    except OSError as error:
        print(f"mpimcast trace: {out}: {error.strerror or error}", file=sys.stderr)
        return 1
    report = _report(found, shifts, out)
    if options.json:
        print(json.dumps(report, indent=1))
    else:
        table.show(report, options.top)
    return 1 if found.bad else 0


def _parser() -> argparse.ArgumentParser:
    made = commands.parser("trace", __doc__)
    made.add_argument("dir", metavar="DIR", help="where the job has left its traces")
    made.add_argument(
        "--out",
        metavar="FILE",
        help=f"where to write the trace for ui.perfetto.dev (default: DIR/{_OUT})",
    )
    made.add_argument("--json", action="store_true", help="print the report as JSON")
    made.add_argument(
        "--top",
        type=arguments.whole(1).parse,
        default=10,
        metavar="N",
        help="how many ranks the tables show (default: %(default)s)",
    )
    return made


def _report(
    found: job.Job, shifts: Sequence[clocks.Shift], out: Path
) -> dict[str, Any]:
    """Return what the traces tell, fit for JSON; times are in seconds."""
    known, nleft_out = waits.find(found.traces, shifts)
    return {
        "out": str(out),
        "files_of_other_jobs": found.nothers,
        "bad_files": found.bad,
        "waits_left_out": nleft_out,
        "processes": [
            {
                "rank": header.process.rank,
                "host": header.process.host,
                "pid": header.process.pid,
                "ended": header.ended,
                "events": len(events),
                "dropped": header.nadded - len(events),
                "small_calls": header.nsmall,
                "clock_error_s": None if error_ns is None else error_ns / 1e9,
            }
            for (header, events), (_, error_ns) in zip(
                found.traces, shifts, strict=True
            )
        ],
        "blame": [_blame(each) for each in waits.blame(known)],
        "waits": _awaited(known),
    }


def _blame(each: waits.Blame) -> dict[str, Any]:
    longest = each.longest
    return {
        "rank": each.rank,
        "seconds": each.total_ns / 1e9,
        "entry_s": each.entry_ns / 1e9,
        "data_s": each.data_ns / 1e9,
        "waits": each.nwaits,
        "by_rank": {rank: ns / 1e9 for rank, ns in sorted(each.by_rank.items())},
        "longest_s": each.longest_ns / 1e9,
        "longest_rank": None if longest is None else longest.rank,
        "longest_operation": None if longest is None else longest.operation,
    }


def _awaited(known: Sequence[waits.Wait]) -> list[dict[str, Any]]:
    """Return for each pair of ranks how long and how often one awaited the other."""
    spent: dict[tuple[int, int], list[int]] = {}
    for wait in known:
        pair = spent.setdefault((wait.rank, wait.awaited), [0, 0])
        pair[0] += wait.idle_ns
        pair[1] += 1
    ordered = sorted(spent.items(), key=lambda each: -each[1][0])
    return [
        {"rank": rank, "awaited": awaited, "seconds": idle_ns / 1e9, "waits": count}
        for (rank, awaited), (idle_ns, count) in ordered
    ]
