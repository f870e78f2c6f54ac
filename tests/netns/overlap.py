# SPDX-License-Identifier: BSD-3-Clause
"""Measure on one rank how much of an Allgather is hidden behind computation.

Started as ``python overlap.py FOLDER``. FOLDER/spec.json says what to do (see main).
The rank writes its results to FOLDER/RANK.json, and makes FOLDER/RANK.end as its last
act.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from pathlib import Path

import numpy as np
from mpi4py import MPI
from pattern import pattern

import mpimcast

STAGES = ("entry_ns", "multicast_ns", "repair_ns", "release_ns")


class Rank:
    """One rank: its operations and their times."""

    def __init__(self, comm: mpimcast.Intracomm, nbytes: int) -> None:
        self.comm = comm
        self.wrong: list[int] = []
        self._nbytes = nbytes

    def block(self, op: int) -> float:
        """Return the seconds in all stages of an operation that the rank waits for."""
        return self._gather(op, 0)[0]

    def exposed(self, op: int, compute_s: float) -> float:
        """Return the seconds of an operation's stages that computing did not hide."""
        stages_s, computed_s = self._gather(op, compute_s)
        return max(0, stages_s - computed_s)

    def _gather(self, op: int, compute_s: float) -> tuple[float, float]:
        """Gather while computing; return the seconds of the stages and of the loop."""
        place = np.zeros((self.comm.size, self._nbytes), np.uint8)
        mine = pattern(self.comm.rank, op, self._nbytes)
        self.comm.Barrier()
        before_s = self._stages_s()
        request = self.comm.Iallgather(mine, place)
        computed_s = compute(compute_s)
        request.Wait()
        for rank, block in enumerate(place):
            if not np.array_equal(block, pattern(rank, op, self._nbytes)):
                self.wrong.append(op)
        return self._stages_s() - before_s, computed_s

    def _stages_s(self) -> float:
        stats = self.comm.stats()
        return sum(stats[name] for name in STAGES) / 1e9


def compute(for_s: float) -> float:
    """Compute in Python and keep other threads from it; return the seconds taken."""
    begin_s = now_s = time.monotonic()
    value = 1
    while now_s - begin_s < for_s:
        for _ in range(1000):
            value = value * 69069 % 4294967291
        now_s = time.monotonic()
    return now_s - begin_s


def main() -> None:
    """Gather blocks of `nbytes`, `turns` times with and without computing."""
    os.chdir(sys.argv[1])
    spec = json.loads(Path("spec.json").read_text())
    comm = mpimcast.Intracomm(MPI.COMM_WORLD, **spec["settings"])
    comm.Allgather(np.zeros(1), np.zeros(comm.size))
    rank = Rank(comm, spec["nbytes"])
    # The thread that has the interpreter keeps it until it blocks.
    sys.setswitchinterval(1000)
    turns = range(1, 1 + spec["turns"])
    rank.block(0)
    blocked_s = comm.allreduce(statistics.median(map(rank.block, turns)), MPI.MAX)
    exposed_s = [rank.exposed(-op, 2 * blocked_s) for op in turns]
    said = {"wrong": rank.wrong, "errors": [], "blocked_s": blocked_s}
    said["hidden"] = [1 - each_s / blocked_s for each_s in exposed_s]
    Path(f"{comm.rank}.json").write_text(json.dumps(said))
    number = comm.rank
    MPI.Finalize()
    Path(f"{number}.end").touch()


if __name__ == "__main__":
    main()
