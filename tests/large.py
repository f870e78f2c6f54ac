# SPDX-License-Identifier: BSD-3-Clause
"""One rank of an Allgather of blocks above 2 GiB, which checks every byte.

A block's data is computed slice by slice, both to fill the block and to check it. So
the receive buffer is the only memory of that size. Rank 0 prints time and counters.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from mpi4py import MPI

import mpimcast

BLOCK_BYTES = (2 << 30) + 4099  # neither the last chunk nor the last word is full
SLICE_BYTES = 4 << 20

# An odd number near 2**64 divided by the golden ratio. Its products with different
# words differ, and they differ in most of their bytes.
MULTIPLIER = 0x9E3779B97F4A7C15


def pattern(rank: int) -> Iterator[tuple[slice, np.ndarray[Any, Any]]]:
    """Yield the slices of a rank's block: the place among all blocks, and the bytes.

    All words of eight bytes are different, within a block and between ranks.
    """
    for begin in range(0, BLOCK_BYTES, SLICE_BYTES):
        end = min(begin + SLICE_BYTES, BLOCK_BYTES)
        words = np.arange(begin // 8, -(-end // 8), dtype=np.uint64)
        words += np.uint64(rank << 32)
        words *= np.uint64(MULTIPLIER)
        place = slice(rank * BLOCK_BYTES + begin, rank * BLOCK_BYTES + end)
        yield place, words.view(np.uint8)[: end - begin]


def main() -> None:
    """Gather the blocks of all ranks, and raise RuntimeError if a byte is wrong."""
    world = MPI.Intracomm(MPI.COMM_WORLD)
    comm = mpimcast.Intracomm(world.Dup(), transport="udp")
    blocks = np.zeros(world.size * BLOCK_BYTES, np.uint8)
    for place, data in pattern(world.rank):
        blocks[place] = data
    begin_s = time.monotonic()
    comm.Allgather(MPI.IN_PLACE, blocks)
    took_s = time.monotonic() - begin_s
    for rank in range(world.size):
        for place, data in pattern(rank):
            if not np.array_equal(blocks[place], data):
                raise RuntimeError(f"wrong bytes from rank {rank}, in {place}")
    if world.rank == 0:
        print(f"{blocks.nbytes} bytes in {took_s:.1f} s: {comm.stats()}")
    comm.Free()


if __name__ == "__main__":
    main()
