# SPDX-License-Identifier: BSD-3-Clause
"""Run one rank of a job that tries a list of transports, and `verbs` alone.

Started as ``python ways.py FOLDER``, with FOLDER/spec.json as for gather.py. In
FOLDER/RANK.json each rank records the explanation and the error of a communicator of
any transport (`any`), and of one of `verbs` alone.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
from mpi4py import MPI
from pattern import pattern

import mpimcast


def take(transport: str, spec: dict[str, Any]) -> dict[str, Any]:
    """Gather over a communicator of a transport; return its explanation and error."""
    settings = {**spec["settings"], "transport": transport}
    comm = mpimcast.Intracomm(MPI.COMM_WORLD.Dup(), **settings)
    said: dict[str, Any] = {"wrong": [], "error": None}
    try:
        for op, nbytes in enumerate(spec["sizes"]):
            got = np.zeros((comm.size, nbytes), np.uint8)
            comm.Allgather(pattern(comm.rank, op, nbytes), got)
            want = [pattern(rank, op, nbytes) for rank in range(comm.size)]
            if not np.array_equal(got, want):
                said["wrong"].append(op)
    except mpimcast.Error as error:
        said["error"] = [type(error).__name__, str(error)]
    said["explained"] = str(comm.explain(spec["sizes"][0]))
    comm.Free()
    return said


def main() -> None:
    """Run one rank."""
    os.chdir(sys.argv[1])
    spec = json.loads(Path("spec.json").read_text())
    ways = {"any": take("verbs,udp,mpi", spec), "verbs": take("verbs", spec)}
    wrong = [way["wrong"] for way in ways.values() if way["wrong"]]
    said = {**ways, "wrong": wrong, "errors": []}
    Path(f"{MPI.COMM_WORLD.rank}.json").write_text(json.dumps(said))


if __name__ == "__main__":
    main()
