# SPDX-License-Identifier: BSD-3-Clause
"""Run one rank of a job whose chunks are received without a copy.

Started as ``python zero_copy_rank.py FOLDER``. FOLDER/spec.json says what to do (see
Rank). The rank writes its results to FOLDER/RANK.json. When an operation has completed
or was given up, its memory is filled with POISON, which must stay until the memory is
used again.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import numpy as np
from mpi4py import MPI

import mpimcast

POISON = 0xD1
NPLACES = 3  # the number of results in memory; operations use them in turn


class Interrupted(Exception):
    """Raised by the signal handler, in the middle of an operation."""


def interrupt(*_: object) -> None:
    """Handle a signal by raising Interrupted."""
    raise Interrupted


def block(rank: int, op: int, nbytes: int) -> np.ndarray[Any, Any]:
    """Return the block that a rank contributes to an operation."""
    words = np.arange(nbytes // 8 + 1, dtype=np.uint64)
    words *= np.uint64(0x9E3779B97F4A7C15)
    words += np.uint64(rank * 1000 + op)
    return words.view(np.uint8)[:nbytes]


class Rank:
    """One rank: its operations, its mishap and its results.

    Parameters
    ----------
    spec
        `settings`, the communicator's settings; `nops`, the number of operations;
        `nbytes`, the bytes of a block; `owned`, whether results are received in memory
        of mpimcast.empty; `mishap`, what happens to the rank `victim` in the middle
        operation, `after_s` after its beginning: "interrupt", "die", or "" for nothing.
    """

    def __init__(self, spec: dict[str, Any]) -> None:
        self.spec = spec
        self.world = MPI.Intracomm(MPI.COMM_WORLD)
        self.comm = mpimcast.Intracomm(self.world.Dup(), **spec["settings"])
        empty = mpimcast.empty if spec["owned"] else np.empty
        nbytes = self.comm.size * spec["nbytes"]
        self.places = [empty(nbytes, np.uint8) for _ in range(NPLACES)]
        for place in self.places:
            place[:] = POISON
        self.outcome: dict[str, Any] = {"wrong": [], "error": ""}

    def gather(self, op: int) -> None:
        """Check that a place is still poisoned, and do one operation into it."""
        place = self.places[op % NPLACES]
        if not (place == POISON).all():
            self.outcome["wrong"].append([op, "written after release"])
        nbytes = self.spec["nbytes"]
        mine = block(self.comm.rank, op, nbytes)
        is_victim = self.comm.rank == self.spec["victim"]
        if self.spec["mishap"] and is_victim and op == self.spec["nops"] // 2:
            self.arrange_mishap()
        try:
            self.comm.Allgather(mine, place)
            whole = [block(rank, op, nbytes) for rank in range(self.comm.size)]
            if not np.array_equal(place, np.concatenate(whole)):
                self.outcome["wrong"].append([op, "bytes"])
        finally:
            place[:] = POISON

    def arrange_mishap(self) -> None:
        """Arrange to be interrupted, or to exit, during the next operation."""
        kind, after_s = self.spec["mishap"], self.spec["after_s"]
        action = interrupt if kind == "interrupt" else lambda *_: os._exit(0)
        signal.signal(signal.SIGALRM, action)
        signal.setitimer(signal.ITIMER_REAL, after_s)

    def run(self) -> None:
        """Do all operations, up to the first that fails."""
        try:
            for op in range(self.spec["nops"]):
                self.gather(op)
        except (mpimcast.Error, Interrupted) as error:
            self.outcome["error"] = type(error).__name__
        if self.spec["mishap"] != "die":
            self.world.Barrier()
        if not all((place == POISON).all() for place in self.places):
            self.outcome["wrong"].append([-1, "written after release"])
        self.outcome["stats"] = self.comm.stats()
        self.outcome["explained"] = str(self.comm.explain(self.spec["nbytes"]))


def main() -> None:
    """Run one rank."""
    folder = Path(sys.argv[1])
    rank = Rank(json.loads((folder / "spec.json").read_text()))
    rank.run()
    (folder / f"{rank.comm.rank}.json").write_text(json.dumps(rank.outcome))
    rank.comm.Free()


if __name__ == "__main__":
    main()
