# SPDX-License-Identifier: BSD-3-Clause
"""Allgathers of known data: at once, or started now and checked later."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from mpi4py import MPI

from mpimcast import Intracomm

Make = Callable[..., Intracomm]

# A value of the setting FAULT.
LOSSY = "loss=0.1,dup=0.02,reorder=0.05"


# So many doubles of each rank go by multicast: an entry barrier cannot carry them.
MULTICAST_COUNT = 3000


def gather_and_check(comm: MPI.Intracomm, count: int = MULTICAST_COUNT) -> None:
    """Gather `count` doubles of each rank, and check the result."""
    rank, size = comm.Get_rank(), comm.Get_size()
    place = np.zeros((size, count))
    comm.Allgather(np.arange(count) + 1000.0 * rank, place)
    expected = np.arange(count) + 1000.0 * np.arange(size)[:, None]
    assert np.array_equal(place, expected)


def started(comm: Intracomm) -> int:
    """Return how many operations this rank has started without the MPI library."""
    stats = comm.stats()
    return stats["epochs"] + stats["node_operations"]


class Gathering:
    """The buffers of an Allgather, whose data follows from the rank and a salt.

    Parameters
    ----------
    comm
        The communicator of the Allgather.
    count
        How many numbers of 4 bytes each rank contributes.
    salt
        Makes the data differ from that of other Allgathers.
    """

    def __init__(self, comm: MPI.Intracomm, count: int, salt: int = 0) -> None:
        self.comm = comm
        self.salt = salt
        self.block = np.empty(count, np.int32)
        self.place = np.empty((comm.Get_size(), count), np.int32)
        self.fill(salt)

    def fill(self, salt: int) -> None:
        """Fill the block with the data of `salt`, and erase what was gathered."""
        self.salt = salt
        self.block[:] = self._block_of(self.comm.Get_rank())
        self.place.fill(-1)

    def start(self) -> MPI.Request:
        """Start the Allgather and return its request."""
        return self.comm.Iallgather(self.block, self.place)

    def check(self) -> None:
        """Assert that every rank's block of the present salt is in its place."""
        for rank, row in enumerate(self.place):
            assert np.array_equal(row, self._block_of(rank)), (rank, self.salt)

    def _block_of(self, rank: int) -> np.ndarray:
        return np.arange(self.block.size, dtype=np.int32) + 1000 * rank + 7 * self.salt


def start_persistent(gathering: Gathering) -> MPI.Prequest:
    """Make a persistent request for the Allgather, start it, and return it."""
    request = gathering.comm.Allgather_init(gathering.block, gathering.place)
    request.Start()
    return request


def require_two_ranks(comm: MPI.Intracomm) -> None:
    """Skip the test on a single rank, whose collectives go to the MPI library."""
    if comm.Get_size() == 1:
        pytest.skip("needs a second rank")
