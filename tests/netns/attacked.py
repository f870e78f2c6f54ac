# SPDX-License-Identifier: BSD-3-Clause
"""Run one rank of a job that is attacked: collectives whose bytes are checked.

Started as ``python attacked.py FOLDER``. FOLDER/spec.json has the `settings`; the bytes
of a `block`; `pause_s`, for which the rank computes before each operation; and
`repeats`, whether all operations have the same data. The rank runs until the file
FOLDER/stop is there. Whenever the test makes another file FOLDER/askN, the rank writes
what it has seen so far to FOLDER/RANK.N.json; when it fails, to FOLDER/RANK.failed. It
makes FOLDER/RANK.end as its last act.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from mpi4py import MPI
from pattern import pattern

import mpimcast

# How often the ranks look whether the test has asked for something.
_OPERATIONS_A_LOOK = 8


class Attacked:
    """One rank.

    Attributes
    ----------
    seen : dict
        What the rank has seen so far: the number of operations, the worst one's time,
        and of those with wrong bytes the operation's and the block's number.
    """

    def __init__(self, spec: dict[str, Any]) -> None:
        self.world = MPI.Intracomm(MPI.COMM_WORLD)
        self.comm = mpimcast.Intracomm(self.world.Dup(), **spec["settings"])
        self.nbytes = spec["block"]
        self._pause_s = spec["pause_s"]
        self._repeats = spec["repeats"]
        self.seen: dict[str, Any] = {"operations": 0, "worst_s": 0.0, "wrong": []}
        self._nasked = 0

    def operate(self) -> None:
        """Run an Allgather and a Bcast, and check all bytes."""
        op = self.seen["operations"]
        root = 0 if self._repeats else op % self.comm.size
        place = np.zeros((self.comm.size, self.nbytes), np.uint8)
        mine = self._block(self.comm.rank, op)
        self._time(lambda: self.comm.Allgather(mine, place))
        for rank in range(self.comm.size):
            if not np.array_equal(place[rank], self._block(rank, op)):
                self.seen["wrong"].append([op, rank])
        place[0] = self._block(root, op + 1)
        if self.comm.rank != root:
            place[0] = 0
        self._time(lambda: self.comm.Bcast(place[0], root))
        if not np.array_equal(place[0], self._block(root, op + 1)):
            self.seen["wrong"].append([op + 1, root])
        self.seen["operations"] += 2

    def _block(self, rank: int, op: int) -> Any:
        return pattern(rank, 0 if self._repeats else op, self.nbytes)

    def _time(self, act: Any) -> None:
        time.sleep(self._pause_s)
        begin_s = time.monotonic()
        act()
        took_s = time.monotonic() - begin_s
        self.seen["worst_s"] = max(self.seen["worst_s"], took_s)

    def answer(self) -> bool:
        """Answer what the test asks, on all ranks; return whether to go on."""
        asks = Path(f"ask{self._nasked}").exists() if self.world.rank == 0 else None
        stops = Path("stop").exists() if self.world.rank == 0 else None
        asks, stops = self.world.bcast((asks, stops))
        if asks:
            self.write(f"{self.world.rank}.{self._nasked}.json")
            self._nasked += 1
            self.seen["worst_s"] = 0.0
        return not stops

    def write(self, name: str, **more: object) -> None:
        """Write what the rank has seen to a file, at once as a whole."""
        new = Path(f"{name}.new")
        new.write_text(json.dumps({**self.seen, "stats": self.comm.stats(), **more}))
        new.rename(name)

    def run(self) -> None:
        """Run until the test stops the job."""
        while self.answer():
            for _ in range(_OPERATIONS_A_LOOK // 2):
                self.operate()
        self.comm.Free()


def main() -> None:
    """Run one rank."""
    os.chdir(sys.argv[1])
    attacked = Attacked(json.loads(Path("spec.json").read_text()))
    rank = attacked.world.rank
    try:
        attacked.run()
    except mpimcast.Error as error:
        attacked.write(f"{rank}.failed", error=str(error))
        os._exit(0)  # other ranks may wait for this one, which has no more to say
    MPI.Finalize()
    Path(f"{rank}.end").touch()


if __name__ == "__main__":
    main()
