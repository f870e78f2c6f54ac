# SPDX-License-Identifier: BSD-3-Clause
"""The report of a simulated run, as lines of text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpimcast.cli.sim.options import COLLECTIVES
from mpimcast.cli.sim.simulator import error_text

if TYPE_CHECKING:
    from mpimcast.cli.sim.simulator import Plain

_ROWS_MAX = 32
_KINDS = ("multicast", "control", "repair")


def report(spec: Plain, result: Plain, wall_s: float) -> list[str]:
    """Return the lines of a run's report."""
    lost = sum(rank["lost_chunks"] for rank in result["ranks"])
    repaired = sum(rank["repaired_chunks"] for rank in result["ranks"])
    fetched = sum(rank["read_chunks"] for rank in result["ranks"])
    blocks = 1 if spec["kind"] == COLLECTIVES["bcast"] else spec["nranks"] - 1
    link_us = spec["block_bytes"] * blocks * 8 / spec["link_mbits"]
    kind = next(name for name, kind in COLLECTIVES.items() if kind == spec["kind"])
    slowest_us = max(rank["busy_ns"] for rank in result["ranks"]) / 1000
    lines = [
        f"ranks     {spec['nranks']} x {spec['block_bytes']} bytes, {kind}",
        f"started   {spec['nops']} operations on each of {spec['nstreams']} streams",
        f"time      {result['time_ns'] / 1000:.1f} us, {slowest_us:.1f} us the slowest",
        f"link time {link_us:.1f} us for the payload that a rank receives in each",
        f"chunks    {lost} lost, {repaired} repaired, {fetched} of them read",
        *parity(spec, result),
        *_laws(result["figures"]),
        f"simulated {result['datagrams']} deliveries in {wall_s:.2f} s",
        "",
        *table(_rank_rows(result)),
        "",
        *table(_link_rows(result)),
        "",
    ]
    if result["violation"]:
        lines.append(f"VIOLATED {result['violation']}")
    else:
        lines.append("every property held")
    return lines


def parity(spec: Plain, result: Plain) -> list[str]:
    """Return the line about parity; none if no operation had a code."""
    if not spec["code_data"]:
        return []
    sent, used, mended, fell_back = (
        sum(rank[name] for rank in result["ranks"])
        for name in ("parity_sent", "parity_used", "groups_mended", "fell_back")
    )
    return [
        (
            f"parity    {sent} chunks sent, {used} used; {mended} groups mended, "
            f"{fell_back} chunks requested all the same"
        )
    ]


def _laws(figures: Plain) -> list[str]:
    sent, lacked = figures["repair_chunks"], figures["lacked_chunks"]
    control, bound = figures["control_most"], figures["control_bound"]
    still = figures["excused_most"]
    return [
        f"repairs   {sent} chunks sent again or read, {lacked} lost, for each receiver",
        f"control   {control} datagrams of a rank in an operation that needs {bound}",
        f"          {still} at most about ranks that stand still",
    ]


def _rank_rows(result: Plain) -> list[list[str]]:
    head = ["rank", "end us", "outcome"]
    head += [f"{way} {kind}" for way in ("tx", "rx") for kind in _KINDS]
    head += ["lost", "repaired", "read", "duplicate", "overrun"]
    rows = [head]
    for index, rank in enumerate(result["ranks"]):
        traffic = [*rank["tx"]["bytes"], *rank["rx"]["bytes"]]
        kinds = ("lost", "repaired", "read", "duplicate")
        chunks = [rank[f"{kind}_chunks"] for kind in kinds]
        outcome = error_text(rank["error"]) if rank["error"] else "ok"
        cells = [f"{rank['end_ns'] / 1000:.1f}", outcome, *traffic, *chunks]
        rows.append([str(index), *map(str, cells), str(rank["overrun_datagrams"])])
    return rows


def _link_rows(result: Plain) -> list[list[str]]:
    fields = ("bytes", "datagrams", "lost_datagrams", "overflowed_datagrams")
    rows = [["link", "bytes", "datagrams", "lost", "overflowed"]]
    rows += [
        [link["name"], *(str(link[field]) for field in fields)]
        for link in result["links"]
    ]
    return rows


def table(rows: list[list[str]]) -> list[str]:
    """Return the lines of a table, whose first row is its head."""
    left_out = len(rows) - 1 - _ROWS_MAX
    if left_out > 0:
        rows = rows[: 1 + _ROWS_MAX]
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        for row in rows
    ]
    if left_out > 0:
        lines.append(f"... and {left_out} more; --json has them all")
    return lines
