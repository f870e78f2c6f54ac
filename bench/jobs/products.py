# SPDX-License-Identifier: BSD-3-Clause
"""Multiply a matrix whose rows all ranks hold, as the rows land or after all have.

Started under mpirun as ``python products.py ROWS COLUMNS TURNS``. Each rank holds ROWS
rows of COLUMNS numbers of 4 bytes, and multiplies the rows of all ranks by vectors. The
number of these is chosen so that multiplying takes as long as gathering by itself.
Rank 0 prints a line of JSON: lists of seconds, from the last rank's start to the last
rank's end.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable

# One core for each rank; the library looks at this when it is loaded.
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np
from mpi4py import MPI

import mpimcast

_TRIALS = 3  # of each measurement that chooses the number of vectors
_ROUNDS = 6  # in which that number is found
_CLOSE = 0.04  # enough, as a share of the time


class Products:
    """One rank's rows, and the products of all rows.

    Parameters
    ----------
    comm
        The communicator.
    rows, columns
        The shape of each rank's shard.
    """

    def __init__(self, comm: mpimcast.Intracomm, rows: int, columns: int) -> None:
        self.comm = comm
        random = np.random.default_rng(comm.rank)
        self.shard = random.random((rows, columns), np.float32)
        self.matrix = np.empty((comm.size, rows, columns), np.float32)
        self.choose(1)

    def choose(self, nvectors: int) -> None:
        """Set how many vectors the matrix is multiplied by."""
        size, rows, columns = self.matrix.shape
        random = np.random.default_rng(1)
        self.vectors = random.random((columns, nvectors), np.float32)
        self.products = np.empty((size, rows, nvectors), np.float32)

    def gather(self) -> None:
        """Gather, and compute nothing."""
        self.comm.Iallgather(self.shard, self.matrix).Wait()

    def multiply(self) -> None:
        """Multiply what is there."""
        for rank in range(self.comm.size):
            self._multiply(rank)

    def wait_first(self) -> None:
        """Wait for all rows, then multiply them."""
        self.gather()
        self.multiply()

    def as_they_land(self) -> None:
        """Multiply each rank's rows as soon as they are there."""
        request = self.comm.Iallgather(self.shard, self.matrix)
        for rank in request.blocks():
            self._multiply(rank)
        request.Wait()

    def _multiply(self, rank: int) -> None:
        np.matmul(self.matrix[rank], self.vectors, out=self.products[rank])

    def time_s(self, work: Callable[[], None]) -> float:
        """Return how long all ranks together take for some work."""
        if work != self.multiply:
            self.matrix.fill(0)
        self.comm.Barrier()
        begin_s = time.monotonic()
        work()
        end_s = time.monotonic()
        # The clock is the machine's, which all hosts share.
        first = self.comm.allreduce(begin_s, MPI.MAX)
        return self.comm.allreduce(end_s, MPI.MAX) - first

    def calibrate(self) -> None:
        """Choose the number of vectors with which both parts take the same time."""
        gather_s = float(np.median([self.time_s(self.gather) for _ in range(_TRIALS)]))
        nvectors = 8
        for _ in range(_ROUNDS):
            self.choose(nvectors)
            self.multiply()  # once without a clock
            multiply_s = float(
                np.median([self.time_s(self.multiply) for _ in range(_TRIALS)])
            )
            if abs(multiply_s - gather_s) < _CLOSE * gather_s:
                break
            nvectors = max(1, round(nvectors * gather_s / multiply_s))
        self.nvectors = nvectors


def main() -> None:
    """Measure, in turns, and check the products."""
    rows, columns, turns = map(int, sys.argv[1:])
    comm = mpimcast.Intracomm(MPI.COMM_WORLD)
    products = Products(comm, rows, columns)
    comm.Allgather(products.shard, products.matrix)
    for _ in range(_TRIALS):  # the path is measured meanwhile
        products.gather()
    products.calibrate()
    ways = ("gather", "multiply", "wait_first", "as_they_land")
    seconds: dict[str, list[float]] = {way: [] for way in ways}
    wrong = 0
    for _ in range(turns):
        expected = None
        for way in ways:
            seconds[way].append(products.time_s(getattr(products, way)))
            if way == "wait_first":
                expected = products.products.copy()
        wrong += not np.array_equal(expected, products.products)
    wrong = comm.allreduce(wrong)
    if comm.rank == 0:
        told = {"nvectors": products.nvectors, "wrong": wrong, "seconds": seconds}
        print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main()
