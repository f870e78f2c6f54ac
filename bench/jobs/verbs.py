# SPDX-License-Identifier: BSD-3-Clause
"""Measure Allgathers over RDMA devices in software, beside a bare C program.

The bare program (bare_verbs.c) multicasts as mpimcast does, but checks and repairs
nothing. Both take turns in one guest. So the difference between their times is what
checks, repairs and Python cost.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from bench.guest.guest import Guest
from bench.guest.kernel import kernel
from bench.jobs import job
from bench.jobs.contenders import BARE, OPENMPI, ROOT
from bench.jobs.machine import machine
from bench.jobs.measurement import Measurement, Network
from bench.jobs.setup import Task

SOURCE = Path(__file__).with_name("bare_verbs.c")
_LIMIT_S = 120


def build(folder: Path) -> Path:
    """Compile the bare program; return its path."""
    program = folder / "bare_verbs"
    compiler = ["gcc", "-std=c11", "-D_GNU_SOURCE", "-O2", SOURCE, "-o", program]
    subprocess.run([*compiler, "-libverbs"], check=True)
    return program


def bare(guest: Guest, program: Path, nranks: int, task: Task) -> dict[str, Any]:
    """Run the bare program in the guest; return the fields of its measurement."""
    command = [program, str(nranks), str(task.nbytes), str(task.iterations)]
    said = guest.run(command, limit_s=_LIMIT_S)
    seconds = [float(line) for line in said.split()]
    return {"seconds": seconds, "processor_seconds": [], "command": [program.name]}


def ours(guest: Guest, nranks: int, task: Task) -> dict[str, Any]:
    """Run mpimcast's ranks in the guest; return the fields of their measurement."""
    environment = OPENMPI.environment
    mpirun = [environment / "mpirun", "--bind-to", "none", "-n", str(nranks)]
    ranks = [environment / "python", job.PROGRAM, "-", "verbs", json.dumps([task])]
    said = guest.run([*mpirun, *ranks], limit_s=_LIMIT_S, cwd=ROOT)
    results = [json.loads(line) for line in said.splitlines() if line[:1] == "{"]
    command = [job.shown(str(word)) for word in (*mpirun, *ranks)]
    versions = results[-1]["versions"]
    return {**results[-1]["found"][0], "versions": versions, "command": command}


def measurements(
    cell: str, nranks: int, nbytes: int, rounds: Iterable[int], iterations: int
) -> Iterator[Measurement]:
    """Yield measurements of Allgathers with blocks of one size, round by round."""
    task = Task("Allgather", nbytes, iterations)
    with (
        tempfile.TemporaryDirectory() as folder,
        Guest(kernel(), devices=nranks, memory="4G") as guest,
    ):
        program = build(Path(folder))
        for round_ in rounds:
            for contender in (BARE, "mpimcast"):
                load, begin = os.getloadavg()[0], datetime.now(timezone.utc)
                found: dict[str, Any] = (
                    bare(guest, program, nranks, task)
                    if contender == BARE
                    else ours(guest, nranks, task)
                )
                yield Measurement(
                    cell=cell,
                    contender=contender,
                    collective=task.collective,
                    nranks=nranks,
                    block_bytes=nbytes,
                    round=round_,
                    network=Network("verbs"),
                    machine=machine(),
                    load=[load, os.getloadavg()[0]],
                    begin=begin.isoformat(timespec="seconds"),
                    **found,
                )
