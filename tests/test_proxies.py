# SPDX-License-Identifier: BSD-3-Clause
"""One proxy serves all jobs of its user on a node at the same time."""

from __future__ import annotations

import json
import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from processes import Process
from support import BIN, MPICH_BIN, mpirun, run

from mpimcast._native.proxy import find

LIMIT_S = 60

# A rank of a job. The jobs wait for each other by pipes, once all ranks of both have
# opened their teams, and again before any rank frees one.
JOB = """
import faulthandler, json, sys
from pathlib import Path
faulthandler.dump_traceback_later({limit_s}, exit=True)
import numpy as np
from mpi4py import MPI
import mpimcast
from mpimcast._native.proxy import find

name, own, other = sys.argv[1:]
pipes = []
world = MPI.Intracomm(MPI.COMM_WORLD)
settings = {{"transport": "udp", "min_bytes": 0, "chunk_bytes": 512, "node_bytes": 0,
            "progress": "proxy", "proxy": name, "fault": "loss=0.1,seed=7"}}
# The same ranks in another order are another team.
comms = [mpimcast.Intracomm(world.Split(0, order), **settings)
         for order in (world.rank, -world.rank)]

def gather(comm, salt):
    place = np.zeros((comm.size, 3000), np.int64)
    comm.Allgather(np.arange(3000) * (comm.rank + 1) + salt, place)
    expected = np.arange(3000) * np.arange(1, comm.size + 1)[:, None] + salt
    assert np.array_equal(place, expected)

def meet(where):
    world.Barrier()
    if world.rank == 0:
        # A pipe that is open for both directions keeps the byte until it is read.
        pipes.append(open(own + where, "r+b", buffering=0))
        pipes[-1].write(b"x")
        with open(other + where, "rb", buffering=0) as pipe:
            pipe.read(1)
    world.Barrier()

for comm in comms:
    gather(comm, 0)
meet("opened")
for turn in range(30):
    for comm in comms:
        gather(comm, turn * 1000 + len(own))
pid = find(name).pid
nthreads = len(list(Path(f"/proc/{{pid}}/task").iterdir()))
if world.rank == 0:
    print(json.dumps([pid, nthreads]))
meet("counted")
for comm in comms:
    comm.Free()
"""

# The threads of a proxy that serve no team: one awaits signals, and one awaits ranks.
NTHREADS_OWN = 2


@pytest.mark.timeout(2 * LIMIT_S)
def test_two_jobs_at_once(tmp_path: Path) -> None:
    """Jobs of two MPI libraries share a proxy, which has one thread for each team."""
    name = f"test-{os.getpid()}-{time.time_ns():x}"
    sizes = {BIN: 3, MPICH_BIN: 2}
    one, other = (str(tmp_path / word) for word in ("one", "other"))
    for job in (one, other):
        for where in ("opened", "counted"):
            os.mkfifo(job + where)
    commands = [
        [
            *mpirun(nranks, bin_folder=bin_folder),
            *("-c", JOB.format(limit_s=LIMIT_S - 20), name, *files),
        ]
        for (bin_folder, nranks), files in zip(
            sizes.items(), ((one, other), (other, one)), strict=True
        )
    ]
    with ThreadPoolExecutor() as pool:
        said = list(pool.map(lambda command: run(command, limit_s=LIMIT_S), commands))
    runner = find(name)
    assert runner is not None
    with Process(runner.pid) as process:
        process.end()
    nteams = 2 * sum(sizes.values())
    for line in said:
        assert json.loads(line) == [runner.pid, nteams + NTHREADS_OWN]
