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

# The counters of the time that operations spend in each of their stages.
STAGES = ("entry_ns", "multicast_ns", "repair_ns", "release_ns")


class Rank:
    """One rank: its operations and their times.

    Attributes
    ----------
    wrong : list of int
        Operations that delivered a wrong block.
    """

    def __init__(self, comm: mpimcast.Intracomm, nbytes: int) -> None:
        self.comm = comm
        self.wrong: list[int] = []
        self._nbytes = nbytes

    def blocking_s(self, op: int) -> float:
        """Do an operation and wait for it at once; return how long its stages took."""
        return self._gather(op, 0)[0]

    def not_hidden_s(self, op: int, compute_s: float) -> float:
        """Compute for `compute_s` during an operation.

        Return by how many seconds the operation's stages took longer than computing.
        """
        stages_s, computed_s = self._gather(op, compute_s)
        return max(0, stages_s - computed_s)

    def _gather(self, op: int, compute_s: float) -> tuple[float, float]:
        """Gather while computing for `compute_s`.

        Return the seconds of the operation's stages, and the seconds of computing.
        """
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
    """Compute in Python for about `for_s`; return the seconds that it took."""
    begin_s = now_s = time.monotonic()
    value = 1
    while now_s - begin_s < for_s:
        for _ in range(1000):
            value = value * 69069 % 4294967291
        now_s = time.monotonic()
    return now_s - begin_s


def main() -> None:
    """Run one rank.

    It gathers blocks of the spec's `nbytes`, `turns` times without computing and as
    often with it.
    """
    os.chdir(sys.argv[1])
    spec = json.loads(Path("spec.json").read_text())
    comm = mpimcast.Intracomm(MPI.COMM_WORLD, **spec["settings"])
    comm.Allgather(np.zeros(1), np.zeros(comm.size))
    rank = Rank(comm, spec["nbytes"])
    # Switches are so rare that a computing thread never hands over the interpreter.
    sys.setswitchinterval(1000)
    turns = range(1, 1 + spec["turns"])
    rank.blocking_s(0)  # the first operation is slower than others
    blocked_s = comm.allreduce(statistics.median(map(rank.blocking_s, turns)), MPI.MAX)
    not_hidden_s = [rank.not_hidden_s(-op, 2 * blocked_s) for op in turns]
    outcome = {"wrong": rank.wrong, "errors": [], "blocked_s": blocked_s}
    outcome["hidden"] = [1 - each_s / blocked_s for each_s in not_hidden_s]
    Path(f"{comm.rank}.json").write_text(json.dumps(outcome))
    number = comm.rank
    MPI.Finalize()
    Path(f"{number}.end").touch()


if __name__ == "__main__":
    main()
