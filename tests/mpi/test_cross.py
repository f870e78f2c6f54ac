# SPDX-License-Identifier: BSD-3-Clause
"""Large blocks, which two ranks of a node read from each other's own memory."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from mpi4py import MPI

from mpimcast import Intracomm


@pytest.fixture
def comm(make_comm: Callable[..., Intracomm]) -> Intracomm:
    """Return a communicator whose ranks share memory."""
    return make_comm(transport="shm", chunk_bytes=0)


def block_of(rank: int, nbytes: int) -> np.ndarray:
    """Return a rank's block of random bytes."""
    return np.random.default_rng((rank, nbytes)).integers(0, 256, nbytes, np.uint8)


def across(comm: Intracomm) -> int:
    """Return how many bytes this rank has read from the memory of others."""
    return int(comm.stats()["node_cross_bytes"])


@pytest.mark.parametrize("more", [-1, 0])
def test_large_blocks(comm: Intracomm, more: int) -> None:
    """Two ranks read blocks from each other from 4 MiB on, in a Bcast from 8 MiB on."""
    reads = comm.size == 2 and more >= 0
    nbytes, total = (4 << 20) + more, 0
    blocks = np.stack([block_of(each, nbytes) for each in range(comm.size)])
    place = np.zeros_like(blocks)
    comm.Allgather(blocks[comm.rank].copy(), place)
    assert np.array_equal(place, blocks)
    total += reads * nbytes
    assert across(comm) == total
    place.fill(0)
    place[comm.rank] = blocks[comm.rank]
    request = comm.Iallgather(MPI.IN_PLACE, place)
    comm.Barrier()  # which progresses with it
    request.Wait()
    assert np.array_equal(place, blocks)
    total += reads * nbytes
    assert across(comm) == total
    data = np.resize(blocks[0], nbytes + (4 << 20))
    copy = data.copy() if comm.rank == 0 else np.zeros_like(data)
    comm.Bcast(copy)
    assert np.array_equal(copy, data)
    total += reads * (comm.rank != 0) * data.size
    assert across(comm) == total


def test_large_blocks_of_gaps(comm: Intracomm) -> None:
    """A derived type is packed before it is read; lengths of blocks may differ."""
    rows, size = 3 << 20, comm.size
    vector = MPI.BYTE.Create_vector(rows, 2, 3).Commit()
    mine = block_of(comm.rank, 3 * rows)
    place = np.zeros((size, 2 * rows), np.uint8)
    comm.Allgather([mine, 1, vector], [place, 2 * rows, MPI.BYTE])
    vector.Free()
    for each in range(size):
        packed = block_of(each, 3 * rows).reshape(rows, 3)[:, :2].ravel()
        assert np.array_equal(place[each], packed)
    assert across(comm) == (size == 2) * 2 * rows
    counts = [5 << 20, *range(1, size)]
    whole = np.full(sum(counts), 0xEE, np.uint8)
    comm.Allgatherv(block_of(comm.rank, counts[comm.rank]), [whole, counts])
    begins = np.cumsum([0, *counts])
    for each in range(size):
        block = whole[begins[each] : begins[each + 1]]
        assert np.array_equal(block, block_of(each, counts[each]))
