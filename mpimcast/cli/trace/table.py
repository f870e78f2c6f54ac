# SPDX-License-Identifier: BSD-3-Clause
"""Prints who made whom wait."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.table import Table

from mpimcast.cli import terminal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console

    Report = dict[str, Any]

# How many ranks that one rank awaited are named in its row.
_NAMED_MAX = 3


def show(report: Report, top: int) -> None:
    """Print a report, with tables of up to `top` ranks."""
    console = terminal.console()
    for line in heading(report):
        console.print(line, highlight=False, markup=False)
    if not report["waits"]:
        console.print("Nobody waited.")
        return
    _show_blame(console, report, top)
    _show_waits(console, report, top)


def heading(report: Report) -> Iterator[str]:
    """Yield lines about the files, and about what is missing in them."""
    processes = report["processes"]
    errors = [each["clock_error_s"] for each in processes]
    nevents = sum(each["events"] for each in processes)
    agree = max((error for error in errors if error is not None), default=0)
    yield (
        f"{len(processes)} processes, {nevents} events; their clocks are put on one "
        f"within {1e6 * agree:.0f} us"
    )
    yield f"{report['out']} is for https://ui.perfetto.dev"
    lost = errors.count(None)
    if lost:
        yield f"{lost} clocks were not compared: NTP's time is taken for them"
    dropped = sum(each["dropped"] for each in processes)
    if dropped:
        yield f"{dropped} older events were dropped, for want of room"
    small = sum(each["small_calls"] for each in processes)
    if small:
        yield f"{small} small calls went to the MPI library at once, and are not shown"
    if report["waits_left_out"]:
        yield f"{report['waits_left_out']} short waits are not counted below"
    if report["files_of_other_jobs"]:
        yield f"{report['files_of_other_jobs']} files of other jobs were left out"
    for each in processes:
        if each["ended"] not in ("exit", "close"):
            yield f"rank {each['rank']} last wrote at: {each['ended']}"


def _show_blame(console: Console, report: Report, top: int) -> None:
    made = Table(title="Who made others wait (a wait for one that waits is passed on)")
    for column in ("rank", "seconds", "entry", "data", "waits"):
        made.add_column(column, justify="right")
    made.add_column("longest")
    for each in report["blame"][:top]:
        longest = f"{each['longest_s']:.6f} s: rank {each['longest_rank']} in "
        made.add_row(
            str(each["rank"]),
            f"{each['seconds']:.6f}",
            f"{each['entry_s']:.6f}",
            f"{each['data_s']:.6f}",
            str(each["waits"]),
            longest + str(each["longest_operation"]),
        )
    console.print(made)
    if len(report["blame"]) > top:
        console.print(f"and {len(report['blame']) - top} more ranks")


def _show_waits(console: Console, report: Report, top: int) -> None:
    by_rank: dict[int, list[Report]] = {}
    for each in report["waits"]:
        by_rank.setdefault(each["rank"], []).append(each)
    rows = sorted(
        by_rank.items(), key=lambda row: -sum(each["seconds"] for each in row[1])
    )
    made = Table(title="Who waited, and whom they awaited")
    made.add_column("rank", justify="right")
    made.add_column("seconds", justify="right")
    made.add_column("awaited: seconds (waits)")
    for rank, awaited in rows[:top]:
        named = [
            f"rank {each['awaited']}: {each['seconds']:.6f} ({each['waits']})"
            for each in awaited[:_NAMED_MAX]
        ]
        if len(awaited) > _NAMED_MAX:
            named.append(f"{len(awaited) - _NAMED_MAX} more")
        seconds = sum(each["seconds"] for each in awaited)
        made.add_row(str(rank), f"{seconds:.6f}", ", ".join(named))
    console.print(made)
    if len(rows) > top:
        console.print(f"and {len(rows) - top} more ranks")
