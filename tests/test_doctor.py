# SPDX-License-Identifier: BSD-3-Clause
"""The doctor on one host: started alone, as one job, and in jobs that are broken."""

from __future__ import annotations

import contextlib
import ipaddress
import json
import os
import socket
import subprocess
import sys
import textwrap
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

# Rank 1 sleeps, inside MPI or before MPI_Init, and never joins the other ranks.
ABSENT = """
import os, sys, time
if "1" in (os.environ.get("OMPI_COMM_WORLD_RANK"), os.environ.get("PMI_RANK")):
    if sys.argv[1] == "inside":
        from mpi4py import MPI
    time.sleep(100)
from mpimcast.__main__ import main
sys.exit(main(["doctor", "--limit", "2"]))
"""


# Ranks listed in argv[1] lack the C library.
WITHOUT_CORE = """
import os, sys
rank = os.environ.get("OMPI_COMM_WORLD_RANK", os.environ.get("PMI_RANK", "0"))
if rank in sys.argv[1]:
    sys.modules["mpimcast._core"] = None
from mpimcast.__main__ import main
sys.exit(main(["doctor", *sys.argv[2:]]))
"""


def test_alone() -> None:
    """Alone, the doctor finds the node usable, and says what it cannot test."""
    command = [sys.executable, *DOCTOR, "--json", "-"]
    code, said = support.run_unchecked(command, limit_s=LIMIT_S)
    document = json.loads(said)
    assert code == 0, said
    common = ["verdict", "degraded_to", "nranks", "nodes", "findings", "exclude"]
    assert list(document)[:7] == [*common, "seconds"]
    assert document["nranks"] == 1
    assert document["nodes"][0]["ranks"] == [0]
    assert document["nodes"][0]["interface"]["mtu_bytes"] > 0
    network = ("multicast", "control", "reads", "mtu", "bandwidth")
    assert set(document["untested"]) == set(network)
    assert all("one rank" in reason for reason in document["untested"].values())


@pytest.mark.parametrize("nranks", [1, pytest.param(NRANKS, marks=pytest.mark.long)])
def test_nothing_but_the_library(nranks: int) -> None:
    """With TRANSPORT=mpi no network is tested, and the verdict is "usable"."""
    command = [*support.mpirun(nranks), *DOCTOR, "--json", "-"]
    said = support.run(command, limit_s=LIMIT_S, MPIMCAST_TRANSPORT="mpi")
    document = json.loads(said)
    assert document["verdict"] == "usable"
    assert "TRANSPORT=mpi" in document["untested"]["multicast"]


@pytest.mark.parametrize(
    ("transport", "verdict", "status"),
    [
        ("auto", "degraded", 3),
        pytest.param("udp,mpi", "degraded", 3, marks=pytest.mark.long),
        ("udp", "unusable", 4),
    ],
)
def test_without_core(
    transport: str, verdict: str, status: int, tmp_path: Path
) -> None:
    """A node without the C library is fatal only if TRANSPORT excludes `mpi`."""
    path = tmp_path / "report.json"
    code, said = support.run_unchecked(
        [*support.mpirun(2), "-c", WITHOUT_CORE, "1", "--json", path],
        limit_s=LIMIT_S,
        MPIMCAST_TRANSPORT=transport,
    )
    assert code == status, said
    document = json.loads(path.read_text())
    assert document["verdict"] == verdict
    (finding,) = document["findings"]
    assert "rank 1: mpimcast's C library cannot be loaded" in finding["what"]
    assert "rank 1" in document["untested"]["multicast"]
    # Programs behave as the verdict says.
    program = """
        import os, sys
        if os.environ["OMPI_COMM_WORLD_RANK"] == "1":
            sys.modules["mpimcast._core"] = None
        from mpi4py import MPI
        import mpimcast, numpy
        mpimcast.Intracomm(MPI.COMM_WORLD).Bcast(numpy.zeros(1 << 20))
    """
    code, said = support.run_unchecked(
        [*support.mpirun(2), "-c", textwrap.dedent(program)],
        limit_s=LIMIT_S,
        MPIMCAST_TRANSPORT=transport,
    )
    assert (code == 0) == (verdict == "degraded"), said


@pytest.mark.parametrize(
    ("transport", "status"),
    [("auto", 0), pytest.param("udp", 4, marks=pytest.mark.long)],
)
def test_no_interface(transport: str, status: int) -> None:
    """On one host a missing interface is fatal only if the job requires a network."""
    code, said = support.run_unchecked(
        [*support.mpirun(NRANKS), *DOCTOR],
        limit_s=LIMIT_S,
        MPIMCAST_TRANSPORT=transport,
        MPIMCAST_NET_DEVICES="nosuch0",
    )
    assert code == status, said
    assert "nosuch0" in said
    assert "not tested: no transport" in " ".join(said.split())


def test_misspelt_variable() -> None:
    """A misspelt variable is a note that suggests the nearest name."""
    said = support.run(
        [sys.executable, *DOCTOR, "launch", "--json", "-"],
        limit_s=LIMIT_S,
        MPIMCAST_TRANSPROT="udp",
    )
    (finding,) = json.loads(said)["findings"]
    assert finding["severity"] == "note"
    assert finding["what"].endswith("did you mean MPIMCAST_TRANSPORT?")


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


def test_port_of_another_program(tmp_path: Path) -> None:
    """Ranks take the next free port of the range, and the ranges are reported."""
    number = os.getpid()
    group = str(ipaddress.IPv4Address(0xEFD00000 + number % 2**20))
    first = 10000 + number % 300 * 64
    last = first + 15
    path = tmp_path / "report.json"
    with contextlib.ExitStack() as others:
        for port in range(first, last):
            kind = socket.AF_INET, socket.SOCK_DGRAM
            other = others.enter_context(socket.socket(*kind))
            other.bind((group, port))
        code, said = support.run_unchecked(
            [*support.mpirun(2), *DOCTOR, "multicast", "--json", path],
            limit_s=LIMIT_S,
            MPIMCAST_TRANSPORT="udp",
            MPIMCAST_GROUP=group,
            MPIMCAST_PORTS=f"{first}-{last}",
        )
    assert code == 0, said
    assert f"UDP to {group} on ports {first}-{last}" in " ".join(said.split())
    ranges = {"group_ports": f"{first}-{last}", "host_ports": f"{first}-{last}"}
    assert json.loads(path.read_text())["firewall"] == {"groups": group, **ranges}


def test_singletons(tmp_path: Path) -> None:
    """Processes started as singletons all fail, and the first one says why."""
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
    """A rank with another setting is named, with the value that most ranks have."""
    doctor = [support.BIN / "python", *DOCTOR, "launch"]
    odd = ["-x", "MPIMCAST_TTL=3", *doctor]
    command = support.mpirun(2)[:-1]
    code, said = support.run_unchecked(
        [*command, *doctor, ":", "-n", "1", *odd], limit_s=LIMIT_S
    )
    assert code == 4, said
    assert "rank 2: MPIMCAST_TTL is 3, on most ranks 1" in " ".join(said.split())


@LIBRARIES
@pytest.mark.parametrize(
    "where", ["inside", pytest.param("outside", marks=pytest.mark.long)]
)
def test_absent_rank(environment: Path, where: str) -> None:
    """The other ranks report an absent rank in time, and end."""
    command = support.mpirun(NRANKS, environment=environment)
    begin_s = time.monotonic()
    code, said = support.run_unchecked([*command, "-c", ABSENT, where], limit_s=40)
    assert time.monotonic() - begin_s < 30
    assert code not in {0, 3, support.TIMED_OUT}, said
    expected = "rank 1 does not answer" if where == "inside" else "in a call of MPI"
    assert expected in " ".join(said.split()), said
