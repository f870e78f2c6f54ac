# SPDX-License-Identifier: BSD-3-Clause
"""Time Broadcasts against the number of ranks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from bench.study import pictures
from bench.study.case import Case, Chapter, Numbers, Results, Table
from bench.study.site import MBITS, Site
from mpimcast._fabric.clos import clos3
from mpimcast._peers.catalogue import BROADCASTS

NRANKS = tuple(2**power for power in range(1, 11))
SIZES = (4096, 65536, 8_000_000)
_QUICK_MAX = 128
_BCAST = 3  # enum mmc_kind
_PEEL_RANKS, _PEEL_BYTES, _PEEL_MBITS = 64, 8_000_000, 400_000

ALGORITHMS = ("binomial", "scatter-allgather", "pipelined-chain")


def cases() -> Iterator[Case]:
    """Yield a case for each algorithm, size and number of ranks, and PEEL's."""
    for nbytes in SIZES:
        for nranks in NRANKS:
            for name in ("multicast", *ALGORITHMS):
                quick = nranks <= _QUICK_MAX and nbytes < SIZES[-1]
                arguments = (name, nranks, nbytes, MBITS)
                yield Case(f"{name}, {nbytes}, {nranks}", arguments, quick)
    for name in ("multicast", *ALGORITHMS):
        yield Case(f"as PEEL, {name}", (name, _PEEL_RANKS, _PEEL_BYTES, _PEEL_MBITS))


def measure(name: str, nranks: int, nbytes: int, mbits: int) -> Numbers:
    """Run one Broadcast from rank 0."""
    fabric = clos3(32, nranks).changed(
        lambda _start, _end, link: replace(link, mbits=mbits)
    )
    site = Site(fabric)
    if name == "multicast":
        return site.ours(block_bytes=nbytes, kind=_BCAST, root=0)
    return site.peer(BROADCASTS[name](nranks, nbytes, 0))


def chapter(results: Results, folder: Path) -> Chapter:
    """Return the chapter, with a table by size and ranks."""
    names = ("multicast", *ALGORITHMS)
    tables = []
    for nbytes in SIZES:
        rows = [
            [
                str(nranks),
                *(
                    f"{results[f'{name}, {nbytes}, {nranks}']['time_ns'] / 1000:.1f}"
                    for name in names
                ),
            ]
            for nranks in NRANKS
        ]
        tables.append(Table(f"Times in us of {nbytes} bytes.", ["ranks", *names], rows))
    peels = [
        ["published by PEEL", "0.27", "4.76 (tree)", "-", "1.40 (ring)"],
        [
            "here",
            *(f"{results[f'as PEEL, {name}']['time_ns'] / 1e6:.2f}" for name in names),
        ],
    ]
    tables.append(
        Table(
            "Times in ms of 8 MB to 64 ranks. PEEL names 0.17 ms as the optimum, "
            "which is the time of 8 MB on a link of about 400 Gbit/s; our links "
            "are as fast. The fabrics are not the same.",
            ["", *names],
            peels,
        )
    )
    return Chapter(
        "Broadcast against the number of ranks",
        [
            (
                "Rank 0 sends to all on a Clos network of switches with 32 ports. "
                "Multicast has a barrier before it sends and reports on the way, "
                "which grow with the logarithm of the number of ranks; the data "
                "itself takes as long for any number."
            )
        ],
        tables,
        [pictures.broadcasts(results, SIZES, NRANKS, names, folder)],
    )
