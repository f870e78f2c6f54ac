# SPDX-License-Identifier: BSD-3-Clause
"""Find what limits jobs of 10,000 and 100,000 ranks."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

from bench.study.case import Case, Chapter, Numbers, Results, Table
from bench.study.site import Site, bound_ns
from mpimcast._fabric.clos import clos3

_NRANKS = (16, 64, 256, 1024)
_QUICK_MAX = 64
_BLOCK_BYTES = 4096
_LARGE = (10_000, 100_000)
_LARGE_BLOCK_BYTES = 1 << 20
_CHUNK_BYTES = 4096
_CHUNKS_MAX = 2**30


def cases() -> Iterator[Case]:
    """Yield a case for each number of ranks."""
    for nranks in _NRANKS:
        yield Case(f"{nranks}", (nranks,), nranks <= _QUICK_MAX)


def measure(nranks: int) -> Numbers:
    """Run an Allgather of one chunk a rank."""
    return Site(clos3(32, nranks)).ours(block_bytes=_BLOCK_BYTES)


def _bitmap_bytes(nranks: int, nbytes: int) -> int:
    return nranks * -(-nbytes // _CHUNK_BYTES) // 8


def _rounds(nranks: int) -> int:
    """Return the rounds of a barrier, in each of which a rank sends one message."""
    return math.ceil(math.log2(nranks))


def _simulated(nranks: int, found: Numbers) -> list[str]:
    """Return the line of a simulated operation."""
    each = found["control_datagrams"] / nranks
    received_mib = (nranks - 1) * _BLOCK_BYTES / (1 << 20)
    excess_us = (found["time_ns"] - bound_ns(nranks, _BLOCK_BYTES)) / 1000
    return [
        f"{nranks}",
        f"{_rounds(nranks)}",
        f"{each:.1f}",
        f"{(each - _rounds(nranks)) / received_mib:.1f}",
        f"{excess_us:.1f}",
        f"{_bitmap_bytes(nranks, _LARGE_BLOCK_BYTES) / 1024:.0f}",
    ]


def _on_paper(nranks: int) -> list[str]:
    """Return the line of a number of ranks that is not simulated."""
    bitmap_kib = _bitmap_bytes(nranks, _LARGE_BLOCK_BYTES) / 1024
    return [
        f"{nranks}",
        f"{_rounds(nranks)}",
        "-",
        "as above",
        "-",
        f"{bitmap_kib:.0f}",
    ]


_HEADS = [
    *("ranks", "rounds of the barrier", "messages of a rank"),
    *("reports for a MiB received", "time beyond the bound, us", "bitmap, KiB"),
]


def chapter(results: Results, _folder: Path) -> Chapter:
    """Return the chapter: what was simulated, and what follows for more ranks."""
    rows = [_simulated(nranks, results[f"{nranks}"]) for nranks in _NRANKS]
    rows += [_on_paper(nranks) for nranks in _LARGE]
    largest = _CHUNKS_MAX // _LARGE[-1] * _CHUNK_BYTES
    return Chapter(
        "What limits larger jobs",
        [
            (
                "The barrier takes as many rounds as the number of ranks has bits, "
                "and each rank sends one message a round. Reports go up a tree, so "
                "that each rank reads those of a few others; how many it sends "
                "depends on the bytes that it receives, not on the number of "
                "ranks. What grows with P in each rank is the bitmap: one bit a "
                "chunk of the whole result."
            ),
            (
                "An index has 30 bits, which at 100,000 ranks are blocks of "
                f"{largest >> 20} MiB. The barrier has room for 2^20 ranks, and "
                "there are at most 256 chains. The times beyond the bound have the "
                "barrier, the ramp of the windows and the last reports in them."
            ),
        ],
        [
            Table(
                "An Allgather of 4 KiB blocks; the bitmap is that of blocks of 1 MiB.",
                _HEADS,
                rows,
            )
        ],
        [],
    )
