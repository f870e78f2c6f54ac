# SPDX-License-Identifier: BSD-3-Clause
"""An Allgather of known data, for tests that start it and check it later."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from mpi4py import MPI

from mpimcast import Intracomm

Make = Callable[..., Intracomm]

LOSSY = "loss=0.1,dup=0.02,reorder=0.05"


def check(comm: MPI.Intracomm, count: int = 300) -> None:
    """Gather known data and check the result."""
    rank, size = comm.Get_rank(), comm.Get_size()
    place = np.zeros((size, count))
    comm.Allgather(np.arange(count) + 1000.0 * rank, place)
    expected = np.arange(count) + 1000.0 * np.arange(size)[:, None]
    assert np.array_equal(place, expected)


class Gathering:
    """Buffers of an Allgather, whose data depends on a salt."""

    def __init__(self, comm: MPI.Intracomm, count: int, salt: int = 0) -> None:
        self.comm = comm
        self.salt = salt
        self.block = np.empty(count, np.int32)
        self.place = np.empty((comm.Get_size(), count), np.int32)
        self.fill(salt)

    def fill(self, salt: int) -> None:
        """Change the block to another salt's, and erase what was gathered."""
        self.salt = salt
        self.block[:] = self._truth(self.comm.Get_rank())
        self.place.fill(-1)

    def start(self) -> MPI.Request:
        """Start the Allgather and return its request."""
        return self.comm.Iallgather(self.block, self.place)

    def check(self) -> None:
        """Assert that every rank's block is in its place."""
        for rank, row in enumerate(self.place):
            assert np.array_equal(row, self._truth(rank)), (rank, self.salt)

    def _truth(self, rank: int) -> np.ndarray:
        return np.arange(self.block.size, dtype=np.int32) + 1000 * rank + 7 * self.salt


def prepared(gathering: Gathering) -> MPI.Prequest:
    """Return a persistent request that has been started."""
    request = gathering.comm.Allgather_init(gathering.block, gathering.place)
    request.Start()
    return request


def alone(comm: MPI.Intracomm) -> None:
    """Skip a test of the library's requests, which a single rank does not have."""
    if comm.Get_size() == 1:
        pytest.skip("needs a second rank")
