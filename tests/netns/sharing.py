# SPDX-License-Identifier: BSD-3-Clause
"""Run one rank of a job whose ranks share arrays on each host.

Started as ``python sharing.py FOLDER``. FOLDER/spec.json has the `settings`, and may
name a `culprit`: a rank that passes private memory in the end. The rank checks each
result twice, with a pause of random length between, and writes what it has seen to
FOLDER/RANK.json. It makes FOLDER/RANK.end as its last act.
"""

from __future__ import annotations

import json
import random
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from mpi4py import MPI

import mpimcast

NTURNS = 6
COUNTS = (1, 5000, 70_001)


class Player:
    """A rank that gathers and broadcasts into arrays that it shares.

    Attributes
    ----------
    wrong : list of str
        What was not as it should be.
    """

    def __init__(self, comm: mpimcast.Intracomm) -> None:
        self.comm = comm
        self.wrong: list[str] = []
        self._rng = random.Random(comm.rank)

    def play(self, count: int) -> None:
        """Run all kinds of collectives with `count` numbers of each rank."""
        comm, size, rank = self.comm, self.comm.size, self.comm.rank
        shared = mpimcast.empty((2, size, count), "i8", comm=comm)
        self._note(mpimcast.is_shared(shared), "not shared")
        rows = np.arange(size)[:, None] + np.zeros((size, count), "i8")
        counts = [count // (each % 3 + 1) for each in range(size)]
        sends = np.concatenate([rows[each, :n] for each, n in enumerate(counts)])
        request = comm.Allgather_init(own := np.empty(count, "i8"), shared[1])
        for turn in range(NTURNS):
            comm.Allgather(rows[rank] + turn, shared[0])
            self._check(shared[0], rows + turn, f"Allgather {turn}")
            comm.Allgatherv(
                rows[rank, : counts[rank]] - turn, [shared[0].reshape(-1), counts]
            )
            whole = shared[0].reshape(-1)[: sends.size]
            self._check(whole, sends - turn, f"Allgatherv {turn}")
            own[:] = rows[rank] * turn
            request.Start()
            request.Wait()
            self._check(shared[1], rows * turn, f"Allgather_init {turn}")
            comm.node_barrier()
            shared[0, rank] = rows[rank] + 7 * turn
            comm.Allgather(MPI.IN_PLACE, shared[0])
            self._check(shared[0], rows + 7 * turn, f"in place {turn}")
            self._barriers()
            root = turn % size
            if rank == root:
                shared[1] = rows - 3 * turn
            comm.Bcast(shared[1], root)
            self._check(shared[1], rows - 3 * turn, f"Bcast {turn}")
            comm.node_barrier()
        request.Free()

    def _barriers(self) -> None:
        """Let some nodes run more barriers than others."""
        host = MPI.Intracomm(MPI.COMM_WORLD).Split_type(MPI.COMM_TYPE_SHARED)
        for _ in range(1 + host.Get_size()):
            self.comm.node_barrier()
        host.Free()

    def _check(self, found: Any, expected: np.ndarray, what: str) -> None:
        self._note(np.array_equal(found, expected), what)
        if self._rng.random() < 0.3:
            time.sleep(self._rng.random() * 0.01)
        self._note(np.array_equal(found, expected), f"{what}, later")

    def _note(self, right: bool, what: str) -> None:
        if not right:
            self.wrong.append(what)

    def pass_private_memory(self, culprit: int) -> str:
        """Return the error of an operation to which one rank passes private memory."""
        comm = self.comm
        shared = mpimcast.empty((comm.size, 9000), "i8", comm=comm)
        place = np.empty_like(shared) if comm.rank == culprit else shared
        try:
            comm.Allgather(np.ones(9000, "i8"), place)
            comm.Allgather(np.ones(9000, "i8"), np.empty_like(shared))
        except mpimcast.Error as error:
            return str(error)
        return ""


def main() -> None:
    """Run the rank."""
    folder = Path(sys.argv[1])
    spec = json.loads((folder / "spec.json").read_text())
    comm = mpimcast.Intracomm(MPI.COMM_WORLD, **spec["settings"])
    player = Player(comm)
    for count in COUNTS:
        player.play(count)
    stats = comm.stats()
    result = {"wrong": player.wrong, "stats": stats}
    result["explained"] = str(comm.explain(COUNTS[-1]))
    if spec.get("culprit") is not None:
        result["error"] = player.pass_private_memory(spec["culprit"])
    (folder / f"{comm.rank}.json").write_text(json.dumps(result))
    (folder / f"{comm.rank}.end").touch()


if __name__ == "__main__":
    main()
