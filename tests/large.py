# SPDX-License-Identifier: BSD-3-Clause
"""One rank of an Allgather of blocks above 2 GiB, compared with computed data.

A block is computed in its place, slice by slice, so that no other memory of that
size is needed. Rank 0 prints the time and the counters.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from mpi4py import MPI

import mpimcast

BLOCK = (2 << 30) + 4099
SLICE = 4 << 20


def pattern(rank: int) -> Iterator[tuple[slice, np.ndarray[Any, Any]]]:
    """Yield the slices of a rank's block, and their places among all blocks."""
    for begin in range(0, BLOCK, SLICE):
        end = min(begin + SLICE, BLOCK)
        # An odd multiplier keeps words distinct, within a block and between ranks.
        words = np.arange(begin // 8, -(-end // 8), dtype=np.uint64)
        words += np.uint64(rank << 32)
        words *= np.uint64(0x9E3779B97F4A7C15)
        place = slice(rank * BLOCK + begin, rank * BLOCK + end)
        yield place, words.view(np.uint8)[: end - begin]


def main() -> None:
    """Run one rank."""
    world = MPI.Intracomm(MPI.COMM_WORLD)
    comm = mpimcast.Intracomm(world.Dup(), transport="udp")
    places = np.zeros(world.size * BLOCK, np.uint8)
    for place, data in pattern(world.rank):
        places[place] = data
    begin_s = time.monotonic()
    comm.Allgather(MPI.IN_PLACE, places)
    took_s = time.monotonic() - begin_s
    for rank in range(world.size):
        for place, data in pattern(rank):
            if not np.array_equal(places[place], data):
                raise RuntimeError(f"wrong bytes in {place} of rank {rank}'s block")
    if world.rank == 0:
        print(f"{places.nbytes} bytes in {took_s:.1f} s: {comm.stats()}")
    comm.Free()


if __name__ == "__main__":
    main()
