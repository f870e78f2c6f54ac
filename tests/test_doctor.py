# SPDX-License-Identifier: BSD-3-Clause
"""The doctor on one host: started alone, as one job, and as jobs gone wrong."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
import support

DOCTOR = ("-m", "mpimcast", "doctor")
LIMIT_S = 60
NRANKS = 3

LIBRARIES = pytest.mark.parametrize(
    "environment",
    [
        pytest.param(support.BIN, id="openmpi"),
        pytest.param(support.MPICH_BIN, id="mpich", marks=pytest.mark.long),
    ],
)

# Rank 1 is in MPI, but does not come to where the others are.
ABSENT = """
import os, sys, time
if "1" in (os.environ.get("OMPI_COMM_WORLD_RANK"), os.environ.get("PMI_RANK")):
    if sys.argv[1] == "inside":
        from mpi4py import MPI
    time.sleep(100)
from mpimcast.__main__ import main
sys.exit(main(["doctor", "--limit", "2"]))
"""


def test_alone() -> None:
    """It looks at this node, and its exit status says that it is well."""
    command = [sys.executable, *DOCTOR, "--json", "-"]
    code, said = support.run_unchecked(command, limit_s=LIMIT_S)
    document = json.loads(said)
    assert code == 0, said
    common = ["verdict", "degraded_to", "nranks", "nodes", "findings", "exclude"]
    assert list(document)[:7] == [*common, "seconds"]
    assert document["nranks"] == 1
    assert document["nodes"][0]["ranks"] == [0]
    assert document["nodes"][0]["interface"]["mtu_bytes"] > 0


@pytest.mark.long
@LIBRARIES
def test_one_host(environment: Path, tmp_path: Path) -> None:
    """Several ranks hear each other over loopback."""
    path = tmp_path / "report.json"
    command = support.mpirun(NRANKS, environment=environment)
    code, said = support.run_unchecked(
        [*command, *DOCTOR, "--json", path], limit_s=LIMIT_S, MPIMCAST_TRANSPORT="udp"
    )
    assert code == 0, said
    assert said.rstrip().endswith("usable")
    document = json.loads(path.read_text())
    assert document["nranks"] == NRANKS
    assert document["transport"] == "udp"
    assert document["control"]["lost"] == {}


def test_singletons(tmp_path: Path) -> None:
    """Processes that each believe to be alone: one tells, and all fail."""
    path = tmp_path / "report.json"
    processes = [
        subprocess.Popen(
            [sys.executable, *DOCTOR, "launch", "--json", path],
            env={
                **os.environ,
                "SLURM_STEP_NUM_TASKS": str(NRANKS),
                "SLURM_PROCID": str(rank),
                "SLURMD_NODENAME": f"n{rank}",
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in range(NRANKS)
    ]
    said = [process.communicate(timeout=LIMIT_S)[0] for process in processes]
    assert [process.returncode for process in processes] == [4] * NRANKS
    assert said[1:] == [""] * (NRANKS - 1)
    assert "--mpi=pmix" in said[0]
    document = json.loads(path.read_text())
    assert document["verdict"] == "unusable"
    (finding,) = document["findings"]
    assert finding["node"] == "n0"
    assert f"srun started {NRANKS} processes" in finding["what"]


@pytest.mark.long
def test_unlike_settings() -> None:
    """A rank with another setting is named, with what the others have."""
    doctor = [support.BIN / "python", *DOCTOR, "launch"]
    odd = ["-x", "MPIMCAST_TTL=3", *doctor]
    command = support.mpirun(2)[:-1]
    code, said = support.run_unchecked(
        [*command, *doctor, ":", "-n", "1", *odd], limit_s=LIMIT_S
    )
    assert code == 4, said
    assert "rank 2: MPIMCAST_TTL is 3, on most 1" in " ".join(said.split())


@LIBRARIES
@pytest.mark.parametrize(
    "where", ["inside", pytest.param("outside", marks=pytest.mark.long)]
)
def test_absent_rank(environment: Path, where: str) -> None:
    """A rank that never comes: the others say so in time, and end."""
    command = support.mpirun(NRANKS, environment=environment)
    begin_s = time.monotonic()
    code, said = support.run_unchecked([*command, "-c", ABSENT, where], limit_s=40)
    assert time.monotonic() - begin_s < 30
    assert code not in {0, 3, support.TIMED_OUT}, said
    expected = "rank 1 does not answer" if where == "inside" else "in a call of MPI"
    assert expected in " ".join(said.split()), said
