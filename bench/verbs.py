# SPDX-License-Identifier: BSD-3-Clause
"""Allgather over RDMA devices in software: ``python -m bench.verbs``, as JSON.

Ours under Open MPI, and a bare C program that checks nothing (bare_verbs.c), take
turns in one guest. A ratio above 1 is what checks, repair and Python cost.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from bench.guest.guest import Guest
from bench.guest.kernel import kernel

ROOT = Path(__file__).resolve().parent.parent
ENVIRONMENT = Path(sys.executable).parent
SOURCE = Path(__file__).with_name("bare_verbs.c")
PROGRAM = Path(__file__).with_name("allgather.py")
_LIMIT_S = 120


def build(folder: Path) -> Path:
    """Compile the bare program."""
    program = folder / "bare_verbs"
    compiler = ["gcc", "-std=c11", "-D_GNU_SOURCE", "-O2", SOURCE, "-o", program]
    subprocess.run([*compiler, "-libverbs"], check=True)
    return program


def bare(
    guest: Guest, program: Path, nranks: int, nbytes: int, count: int
) -> list[float]:
    """Return the seconds of the bare program's operations."""
    command = [program, str(nranks), str(nbytes), str(count)]
    said = guest.run(command, limit_s=_LIMIT_S)
    return [float(line) for line in said.split()]


def ours(guest: Guest, nranks: int, nbytes: int, count: int) -> dict[str, Any]:
    """Return what ranks of ours found: seconds and sums of counters."""
    mpirun = [ENVIRONMENT / "mpirun", "--bind-to", "none", "-n", str(nranks)]
    ranks = [ENVIRONMENT / "python", PROGRAM, "verbs", str(nbytes), str(count)]
    said = guest.run([*mpirun, *ranks], limit_s=_LIMIT_S, cwd=ROOT)
    line = next(line for line in said.splitlines() if line.startswith("{"))
    found: dict[str, Any] = json.loads(line)
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--bytes", type=int, default=1 << 20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--iterations", type=int, default=5, help="of each round")
    options = parser.parse_args()
    shape = (options.ranks, options.bytes, options.iterations)
    seconds: dict[str, list[float]] = {"ours": [], "bare": []}
    with (
        tempfile.TemporaryDirectory() as folder,
        Guest(kernel(), devices=options.ranks, memory="4G") as guest,
    ):
        program = build(Path(folder))
        for _ in range(options.rounds):
            seconds["bare"] += bare(guest, program, *shape)
            found = ours(guest, *shape)
            seconds["ours"] += found["seconds"]
    medians = {way: statistics.median(each) for way, each in seconds.items()}
    said = {
        "load": os.getloadavg(),
        "median_s": medians,
        "ratio": medians["ours"] / medians["bare"],
        "seconds": seconds,
        "stats of the last round": found["stats"],
    }
    print(json.dumps(said, indent=1))


if __name__ == "__main__":
    main()
