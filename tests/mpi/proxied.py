# SPDX-License-Identifier: BSD-3-Clause
"""Proxies for tests, and the ranks that have them."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable

from mpi4py import MPI
from processes import Process

from mpimcast import Intracomm
from mpimcast._native.proxy import find

# Makes a communicator, some of whose ranks have a proxy: all, or those that a name of
# WHO stands for.
Make = Callable[..., Intracomm]

# Within so many seconds what must happen does, on a busy machine, too.
LIMIT_S = 20

# By name: which ranks have a proxy.
WHO: dict[str, Callable[[int], bool]] = {
    "all": lambda _rank: True,
    "odd": lambda rank: rank % 2 == 1,
}


class Proxies:
    """The proxies of a run, whose names no other run has.

    Attributes
    ----------
    name : str
        The name of the proxy that tests use unless they end it.
    """

    def __init__(self, comm: MPI.Intracomm) -> None:
        self._comm = comm
        self._stem = comm.bcast(f"test-{os.getpid()}-{time.time_ns():x}")
        self._numbers = itertools.count()
        self._names: list[str] = []
        self.name = self.new_name()

    def new_name(self) -> str:
        """Return another name, the same on all ranks."""
        self._names.append(f"{self._stem}-{next(self._numbers)}")
        return self._names[-1]

    def end(self) -> None:
        """End all proxies that run. All communicators were freed before."""
        self._comm.Barrier()
        for name in self._names if self._comm.rank == 0 else ():
            runner = find(name)
            if runner is not None:
                with Process(runner.pid) as process:
                    process.end()
        self._comm.Barrier()
