# SPDX-License-Identifier: BSD-3-Clause
"""A program of mpi4py alone, whose arrays lie on a device."""

from __future__ import annotations

import arrays
import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
rank, size = comm.Get_rank(), comm.Get_size()
driver = arrays.open_driver()
block = arrays.CudaArray(driver, 100_000)
blocks = arrays.DlpackArray(driver, size * block.nbytes)
block.write(np.full(block.nbytes, rank, np.uint8))
comm.Allgather(block, blocks)
assert (blocks.read().reshape(size, -1) == np.arange(size)[:, None]).all()
comm.Ibcast(block).Wait()
assert not block.read().any()
print("right, by", "mpimcast" if comm.stats()["calls_ours"] else "the MPI library")
