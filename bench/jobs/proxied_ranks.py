# SPDX-License-Identifier: BSD-3-Clause
"""The program of each rank of proxy.py: spends processor time, and tells how much.

It is started as ``proxied_ranks.py ITERATIONS SIZES PROXY``, where PROXY is the name of
the ranks' proxy, or empty. Rank 0 prints a line of JSON.

An operation's cost is the processor time that all threads of the rank's process spend,
without what the calling thread spends outside of the operation: in the computation, and
in barriers of the MPI library, which polls. So the cost includes the work of mpimcast's
threads after the operation has ended here, when they serve ranks that still lack data.
"""

from __future__ import annotations

import ctypes
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from mpi4py import MPI

import mpimcast
from mpimcast._native.proxy import find

# An operation is to end within the computation beside it, though ranks share cores.
COMPUTE_NS = 30_000_000

# Two operations open the communicator, and fill the caches.
WARMUP = 2


class Outside:
    """Sums up the processor time that this thread spends outside of operations."""

    def __init__(self) -> None:
        self.spent_ns = 0

    def run(self, what: Callable[[], object]) -> None:
        """Run something that is no part of an operation."""
        begin_ns = time.thread_time_ns()
        what()
        self.spent_ns += time.thread_time_ns() - begin_ns


class Computation:
    """A computation that keeps a processor busy, and frees Python's lock meanwhile."""

    def __init__(self) -> None:
        self._numbers = np.random.default_rng(1).random(50_000)

    def run(self) -> None:
        """Compute until this thread has spent COMPUTE_NS of processor time."""
        end_ns = time.thread_time_ns() + COMPUTE_NS
        while time.thread_time_ns() < end_ns:
            np.sqrt(self._numbers, out=self._numbers)


def clock_of(pid: int) -> int:
    """Return the clock of the processor time of another process."""
    clock = ctypes.c_int()
    if ctypes.CDLL(None).clock_getcpuclockid(pid, ctypes.byref(clock)) != 0:
        raise ProcessLookupError(f"process {pid} has no clock")
    return clock.value


class Rank:
    """A rank, with a communicator that has the settings of the environment."""

    def __init__(self, iterations: int, proxy: str) -> None:
        self.world = MPI.COMM_WORLD
        self._iterations = iterations
        self._computation = Computation()
        nbefore = self._count_threads()
        self.comm = mpimcast.Intracomm(self.world.Dup())
        block = np.zeros(1 << 16, np.uint8)
        self._gather(block)()
        self.nthreads = [self._count_threads() - nbefore]
        self._start(block)().Wait()
        self.nthreads.append(self._count_threads() - nbefore)
        runner = find(proxy) if proxy else None
        self._clock = clock_of(runner.pid) if runner is not None else None

    @staticmethod
    def _count_threads() -> int:
        return sum(1 for _ in Path("/proc/self/task").iterdir())

    def _place(self, block: np.ndarray) -> np.ndarray:
        return np.zeros((self.world.size, block.size), np.uint8)

    def _gather(self, block: np.ndarray) -> Callable[[], object]:
        place = self._place(block)
        return lambda: self.comm.Allgather(block, place)

    def _start(self, block: np.ndarray) -> Callable[[], MPI.Request]:
        place = self._place(block)
        return lambda: self.comm.Iallgather(block, place)

    # ---- what is measured ----------------------------------------------------

    def beside(self, nbytes: int) -> dict[str, float]:
        """Measure an Iallgather beside a computation that lasts longer."""
        start = self._start(np.full(nbytes, self.world.rank, np.uint8))

        def once(outside: Outside) -> None:
            request = start()
            outside.run(self._computation.run)
            request.Wait()

        return self._measure(once)

    def waiting(self, nbytes: int) -> dict[str, float]:
        """Measure an Allgather in which all ranks wait for one that computes first."""
        gather = self._gather(np.full(nbytes, self.world.rank, np.uint8))
        late = self.world.rank == self.world.size - 1

        def once(outside: Outside) -> None:
            if late:
                outside.run(self._computation.run)
            gather()

        return self._measure(once)

    def _measure(self, once: Callable[[Outside], None]) -> dict[str, float]:
        """Return what an operation costs a rank, in us, and the proxy for each rank.

        A rank's cost has two parts: that of the thread which calls, and of the others.
        """
        for _ in range(WARMUP):
            once(Outside())
        outside = Outside()
        self.world.Barrier()
        proxy_ns, begin_ns = self._proxy_ns(), time.process_time_ns()
        called_ns = time.thread_time_ns()
        for _ in range(self._iterations):
            outside.run(self.world.Barrier)
            once(outside)
        outside.run(self.world.Barrier)
        called_ns = time.thread_time_ns() - called_ns
        others_ns = time.process_time_ns() - begin_ns - called_ns
        proxy_ns = self._proxy_ns() - proxy_ns
        called_ns -= outside.spent_ns
        sums = np.array([called_ns, others_ns, proxy_ns / self.world.size])
        self.world.Allreduce(MPI.IN_PLACE, sums)
        means = (sums / self.world.size / self._iterations / 1e3).tolist()
        return dict(zip(("call", "threads", "proxy"), means, strict=True))

    def _proxy_ns(self) -> int:
        return 0 if self._clock is None else time.clock_gettime_ns(self._clock)


def main() -> None:
    """Measure all, and have rank 0 print it."""
    iterations, sizes, proxy = sys.argv[1:]
    rank = Rank(int(iterations), proxy)
    told = {
        "beside": {nbytes: rank.beside(nbytes) for nbytes in json.loads(sizes)},
        "waiting": {nbytes: rank.waiting(nbytes) for nbytes in json.loads(sizes)},
        "threads": rank.nthreads,
    }
    rank.comm.Free()
    if rank.world.rank == 0:
        print(json.dumps(told))


if __name__ == "__main__":
    main()
