# SPDX-License-Identifier: BSD-3-Clause
"""One rank of a job whose chunks come right to their places.

Started as ``python covering_rank.py FOLDER``. FOLDER/spec.json says what to do;
FOLDER/RANK.json tells what came of it. Results that have been returned, or given up,
are poisoned, and must stay so to the end.
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
NPLACES = 3


class Interrupted(Exception):
    """A signal's handler has raised this."""


def interrupt(*_: object) -> None:
    """Interrupt what is going on."""
    raise Interrupted


def block(rank: int, op: int, nbytes: int) -> np.ndarray[Any, Any]:
    """Return what a rank contributes."""
    words = np.arange(nbytes // 8 + 1, dtype=np.uint64)
    words *= np.uint64(0x9E3779B97F4A7C15)
    words += np.uint64(rank * 1000 + op)
    return words.view(np.uint8)[:nbytes]


class Rank:
    """What one rank does and sees."""

    def __init__(self, spec: dict[str, Any]) -> None:
        self.spec = spec
        self.world = MPI.Intracomm(MPI.COMM_WORLD)
        self.comm = mpimcast.Intracomm(self.world.Dup(), **spec["settings"])
        make = mpimcast.empty if spec["owned"] else np.empty
        nbytes = self.comm.size * spec["nbytes"]
        self.places = [make(nbytes, np.uint8) for _ in range(NPLACES)]
        for place in self.places:
            place[:] = POISON
        self.said: dict[str, Any] = {"wrong": [], "error": ""}

    def gather(self, op: int) -> None:
        """Do one operation, in a place used before."""
        place = self.places[op % NPLACES]
        if not (place == POISON).all():
            self.said["wrong"].append([op, "written after release"])
        nbytes = self.spec["nbytes"]
        mine = block(self.comm.rank, op, nbytes)
        hurt = op == self.spec["nops"] // 2 and self.comm.rank == self.spec["victim"]
        if self.spec["mishap"] and hurt:
            self.mishap()
        try:
            self.comm.Allgather(mine, place)
            whole = [block(rank, op, nbytes) for rank in range(self.comm.size)]
            if not np.array_equal(place, np.concatenate(whole)):
                self.said["wrong"].append([op, "bytes"])
        finally:
            place[:] = POISON

    def mishap(self) -> None:
        """Be interrupted, or die, in the operation that comes."""
        kind, after_s = self.spec["mishap"], self.spec["after_s"]
        action = interrupt if kind == "interrupt" else lambda *_: os._exit(0)
        signal.signal(signal.SIGALRM, action)
        signal.setitimer(signal.ITIMER_REAL, after_s)

    def run(self) -> None:
        """Do all operations, or as many as can be."""
        try:
            for op in range(self.spec["nops"]):
                self.gather(op)
        except (mpimcast.Error, Interrupted) as error:
            self.said["error"] = type(error).__name__
        if self.spec["mishap"] != "die":
            self.world.Barrier()
        if not all((place == POISON).all() for place in self.places):
            self.said["wrong"].append([-1, "written after release"])
        self.said["stats"] = self.comm.stats()
        self.said["explained"] = str(self.comm.explain(self.spec["nbytes"]))


def main() -> None:
    """Run one rank."""
    folder = Path(sys.argv[1])
    rank = Rank(json.loads((folder / "spec.json").read_text()))
    rank.run()
    (folder / f"{rank.comm.rank}.json").write_text(json.dumps(rank.said))
    rank.comm.Free()


if __name__ == "__main__":
    main()
