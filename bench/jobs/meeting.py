# SPDX-License-Identifier: BSD-3-Clause
"""A communicator whose barrier needs no network, for ranks far from each other."""

from __future__ import annotations

import mmap
import os
import time
from typing import TYPE_CHECKING

import numpy as np
from mpi4py import MPI

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from typing_extensions import Self

_POLL_S = 0.0002


class Meeting(MPI.Intracomm):
    """A communicator of the MPI library, whose ranks meet in a file that all see.

    Over a long link ranks leave a barrier of messages up to a round trip apart, or more
    if one is lost; operations would begin as far apart. All else is the library's.

    Parameters
    ----------
    comm
        The communicator.
    path
        The file, in which each rank counts its barriers.
    """

    _counts: NDArray[np.uint64]

    def __new__(cls, comm: MPI.Intracomm, path: str) -> Self:
        """Wrap the communicator, and open the file."""
        self = super().__new__(cls, comm)
        nbytes = 8 * comm.size
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT)
        os.ftruncate(descriptor, nbytes)
        memory = mmap.mmap(descriptor, nbytes)
        os.close(descriptor)
        self._counts = np.frombuffer(memory, np.uint64)
        return self

    def Dup(self, info: MPI.Info | None = None) -> MPI.Intracomm:  # type: ignore[override]  # noqa: N802 -- mpi4py's name
        """Return a communicator of the library, as a copy has no file."""
        return MPI.Intracomm(self).Dup(info)

    def Barrier(self) -> None:  # noqa: N802 -- mpi4py's name
        """Return once all ranks have called this as often."""
        self._counts[self.rank] += np.uint64(1)
        own = self._counts[self.rank]
        while np.any(self._counts < own):
            time.sleep(_POLL_S)
