# SPDX-License-Identifier: BSD-3-Clause
"""Run one rank of a job that tries TRANSPORT=verbs,udp,mpi, and then TRANSPORT=verbs.

Started as ``python ways.py FOLDER``, with FOLDER/spec.json as for gather.py. The rank
writes each one's explanation and error to FOLDER/RANK.json, as `any` and as `verbs`.
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


def try_transport(transport: str, spec: dict[str, Any]) -> dict[str, Any]:
    """Gather on a communicator with a transport; return its explanation and error."""
    settings = {**spec["settings"], "transport": transport}
    comm = mpimcast.Intracomm(MPI.COMM_WORLD.Dup(), **settings)
    outcome: dict[str, Any] = {"wrong": [], "error": None}
    try:
        for op, nbytes in enumerate(spec["sizes"]):
            got = np.zeros((comm.size, nbytes), np.uint8)
            comm.Allgather(pattern(comm.rank, op, nbytes), got)
            want = [pattern(rank, op, nbytes) for rank in range(comm.size)]
            if not np.array_equal(got, want):
                outcome["wrong"].append(op)
    except mpimcast.Error as error:
        outcome["error"] = [type(error).__name__, str(error)]
    outcome["explained"] = str(comm.explain(spec["sizes"][0]))
    comm.Free()
    return outcome


def main() -> None:
    """Run one rank."""
    os.chdir(sys.argv[1])
    spec = json.loads(Path("spec.json").read_text())
    ways = {
        "any": try_transport("verbs,udp,mpi", spec),
        "verbs": try_transport("verbs", spec),
    }
    wrong = [way["wrong"] for way in ways.values() if way["wrong"]]
    outcome = {**ways, "wrong": wrong, "errors": []}
    Path(f"{MPI.COMM_WORLD.rank}.json").write_text(json.dumps(outcome))


if __name__ == "__main__":
    main()
