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


def chapter(results: Results, _folder: Path) -> Chapter:
    """Return the chapter: what was measured, and what follows for more ranks."""
    measured = []
    for nranks in _NRANKS:
        found = results[f"{nranks}"]
        excess_us = (found["time_ns"] - bound_ns(nranks, _BLOCK_BYTES)) / 1000
        measured.append(
            [
                f"{nranks}",
                "simulated",
                f"{math.ceil(math.log2(nranks))}",
                f"{found['control_most']}",
                f"{found['control_datagrams'] / nranks:.1f}",
                f"{excess_us:.1f}",
                f"{_bitmap_bytes(nranks, _LARGE_BLOCK_BYTES) / 1024:.0f}",
            ]
        )
    last = results[f"{_NRANKS[-1]}"]
    first = results[f"{_NRANKS[-2]}"]
    doublings = math.log2(_NRANKS[-1] / _NRANKS[-2])
    each = last["control_datagrams"] / _NRANKS[-1]
    more = (each - first["control_datagrams"] / _NRANKS[-2]) / doublings
    for nranks in _LARGE:
        steps = math.log2(nranks / _NRANKS[-1])
        measured.append(
            [
                f"{nranks}",
                "extrapolated",
                f"{math.ceil(math.log2(nranks))}",
                "-",
                f"{each + more * steps:.1f}",
                "-",
                f"{_bitmap_bytes(nranks, _LARGE_BLOCK_BYTES) / 1024:.0f}",
            ]
        )
    largest = _CHUNKS_MAX // _LARGE[-1] * _CHUNK_BYTES
    return Chapter(
        "What limits larger jobs",
        [
            (
                "The barrier takes as many rounds as the number of ranks has bits, "
                "and each rank sends one message a round; reports go up a tree, so "
                "that each rank reads those of a few others. What grows with P in "
                "each rank is the bitmap: one bit a chunk of the whole result. An "
                "index has 30 bits, which at 100,000 ranks are blocks of "
                f"{largest >> 20} MiB. The barrier has room for 2^20 ranks, and "
                "there are at most 256 chains."
            ),
            (
                "The times beyond the bound of simulated operations have the "
                "barrier, the ramp of the windows and the last reports in them."
            ),
        ],
        [
            Table(
                "Control messages of an Allgather of 4 KiB blocks, and the "
                "bitmap's KiB for blocks of 1 MiB.",
                [
                    "ranks",
                    "",
                    "rounds",
                    "messages of a rank, most",
                    "mean",
                    "time beyond the bound, us",
                    "bitmap, KiB",
                ],
                measured,
            )
        ],
        [],
    )
