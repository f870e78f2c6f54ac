# SPDX-License-Identifier: BSD-3-Clause
"""Time Allgathers at the paper's 188 nodes, against the bound."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from bench.study import pictures
from bench.study.case import Case, Chapter, Numbers, Results, Table
from bench.study.site import Site, bound_ns
from mpimcast._fabric.clos import paper
from mpimcast._peers.catalogue import ALLGATHERS

NRANKS = 188
SIZES = (*(4096 * 4**power for power in range(6)), 8 << 20)
_QUICK = (4096, 16384)


def cases() -> Iterator[Case]:
    """Yield a case for each algorithm and size."""
    for nbytes in SIZES:
        for name in ("multicast", *ALLGATHERS):
            yield Case(f"{name} {nbytes}", (name, nbytes), nbytes in _QUICK)


def measure(name: str, nbytes: int) -> Numbers:
    """Run one Allgather."""
    site = Site(paper(NRANKS))
    if name == "multicast":
        return site.ours(block_bytes=nbytes)
    return site.peer(ALLGATHERS[name](site.racks, nbytes))


def chapter(results: Results, folder: Path) -> Chapter:
    """Return the chapter, with a table by size."""
    names = ("multicast", *ALLGATHERS)
    rows = []
    for nbytes in SIZES:
        bound = bound_ns(NRANKS, nbytes)
        times = [results[f"{name} {nbytes}"]["time_ns"] for name in names]
        rows.append(
            [
                f"{nbytes // 1024} KiB",
                f"{bound / 1000:.0f}",
                *(f"{time / bound:.3f}" for time in times),
            ]
        )
    return Chapter(
        "Time at 188 nodes",
        [
            (
                "The bound is N (P - 1) / B: the time in which a link of 100 "
                "Gbit/s brings a rank the other blocks. Multicast has the settings "
                "that are shipped, and queues of 1 MiB a port that drop; the "
                "others have lossless links with queues of any length, and no cost "
                "of software for a message."
            ),
        ],
        [
            Table(
                "Times, divided by the bound.",
                ["block", "bound, us", *names],
                rows,
            )
        ],
        [pictures.times(results, NRANKS, SIZES, names, folder)],
    )
