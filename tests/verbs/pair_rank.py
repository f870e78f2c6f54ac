# SPDX-License-Identifier: BSD-3-Clause
"""Run one rank of a job whose ranks send each other messages.

Started as ``python pair_rank.py FOLDER``. FOLDER/spec.json has `settings`, those of the
pairs, and `sizes`, the bytes of the messages. Even ranks are connected with the next,
and each sends a message of each size while it receives one; what arrives is compared
with what the MPI library delivers. The rank writes its counters to FOLDER/RANK.json.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from mpi4py import MPI

from mpimcast import sdr


def exchange(world: MPI.Intracomm, pair: sdr.Pair, nbytes: int) -> None:
    """Exchange messages, and compare."""
    own = np.random.default_rng([pair.rank, nbytes]).integers(0, 256, nbytes, np.uint8)
    truth, place = np.zeros(nbytes, np.uint8), np.zeros(nbytes, np.uint8)
    world.Sendrecv(own, pair.peer, recvbuf=truth, source=pair.peer)
    request = pair.Isend(own)
    pair.Recv(place)
    request.Wait()
    assert np.array_equal(place, truth), nbytes


def main(folder: Path) -> None:
    """Do what the spec says."""
    spec: dict[str, Any] = json.loads((folder / "spec.json").read_text())
    world = MPI.Intracomm(MPI.COMM_WORLD)
    settings: dict[str, Any] = spec["settings"]
    with sdr.connect(world, world.rank ^ 1, **settings) as pair:
        path = pair.path()
        for nbytes in spec["sizes"]:
            exchange(world, pair, nbytes)
    told = {"path": path, "counters": pair.stats()}
    (folder / f"{world.rank}.json").write_text(json.dumps(told))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
