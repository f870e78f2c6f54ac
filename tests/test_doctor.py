# SPDX-License-Identifier: BSD-3-Clause
"""The doctor on one host: with a single rank, with several, and in broken jobs."""

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

from mpimcast._native import codec

DOCTOR = ("-m", "mpimcast", "doctor")
LIMIT_S = 60
NRANKS = 3

LIBRARIES = pytest.mark.parametrize(
    "bin_folder",
    [
        pytest.param(support.BIN, id="openmpi"),
        pytest.param(support.MPICH_BIN, id="mpich", marks=pytest.mark.long),
    ],
)

# Rank 1 sleeps and never joins the other ranks. It sleeps after MPI_Init if the
# argument is "after", else before it.
ABSENT = """
import os, sys, time
if "1" in (os.environ.get("OMPI_COMM_WORLD_RANK"), os.environ.get("PMI_RANK")):
    if sys.argv[1] == "after":
        from mpi4py import MPI
    time.sleep(100)
from mpimcast.__main__ import main
sys.exit(main(["doctor", "--limit", "2"]))
"""

# The ranks whose digits are in argv[1] lack the C library.
WITHOUT_CORE = """
import os, sys
rank = os.environ.get("OMPI_COMM_WORLD_RANK", os.environ.get("PMI_RANK", "0"))
if rank in sys.argv[1]:
    sys.modules["mpimcast._core"] = None
from mpimcast.__main__ import main
sys.exit(main(["doctor", *sys.argv[2:]]))
"""


def test_single_rank() -> None:
    """On one rank the doctor finds the node usable, and says what it cannot test."""
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
def test_mpi_library_only(nranks: int) -> None:
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
    """A rank without the C library is fatal only if TRANSPORT excludes `mpi`.

    A program in the same job fails or succeeds as the doctor's verdict says.
    """
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


@pytest.mark.parametrize("found", [True, False])
def test_codec(found: bool, tmp_path: Path) -> None:
    """With RELIABILITY=code the report says whether ISA-L is there, else what to do."""
    if found and codec.missing():
        support.skip_or_fail(codec.missing())
    (tmp_path / "libisal.so.2").write_text("This is no library.")
    said = support.run(
        [sys.executable, *DOCTOR, "nodes", "--json", "-"],
        limit_s=LIMIT_S,
        MPIMCAST_RELIABILITY="code",
        **({} if found else {"LD_LIBRARY_PATH": str(tmp_path)}),
    )
    document = json.loads(said)
    codes = document["nodes"][0]["erasure_codes"]
    assert codes["codec"] == ("ISA-L" if found else "tables")
    notes = [each for each in document["findings"] if "ISA-L" in each["what"]]
    assert [each["severity"] for each in notes] == ([] if found else ["note"])
    for each in notes:
        assert f"{tmp_path}/libisal.so.2" in each["what"]
        assert "apt install libisal2" in each["mend"]


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
def test_usable_host(bin_folder: Path, tmp_path: Path) -> None:
    """Ranks hear each other over loopback, so the doctor finds the host usable."""
    path = tmp_path / "report.json"
    command = support.mpirun(NRANKS, bin_folder=bin_folder)
    code, said = support.run_unchecked(
        [*command, *DOCTOR, "--json", path], limit_s=LIMIT_S, MPIMCAST_TRANSPORT="udp"
    )
    assert code == 0, said
    assert said.rstrip().endswith("usable")
    document = json.loads(path.read_text())
    assert document["nranks"] == NRANKS
    assert document["transport"] == "udp"
    assert document["control"]["lost"] == {}


def test_ports_of_another_program(tmp_path: Path) -> None:
    """If other programs hold all ports of PORTS but the last, ranks take the last.

    The report names the whole range, which a firewall must let through.
    """
    # Test runs at the same time must not meet: each takes its own ports and its own
    # group in 239.208.0.0/12, which follow from its process id.
    pid = os.getpid()
    group = str(ipaddress.IPv4Address("239.208.0.0") + pid % 2**20)
    first = 10000 + pid % 300 * 64
    last = first + 15
    path = tmp_path / "report.json"
    with contextlib.ExitStack() as sockets:
        for port in range(first, last):
            kind = socket.AF_INET, socket.SOCK_DGRAM
            taken = sockets.enter_context(socket.socket(*kind))
            taken.bind((group, port))
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
    """If srun did not connect its processes by PMIx, all fail, and one says why.

    Each process is then a singleton: an MPI job of one rank.
    """
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
def test_different_settings() -> None:
    """A rank whose setting differs is named, together with the others' value."""
    doctor = [support.BIN / "python", *DOCTOR, "launch"]
    different = ["-x", "MPIMCAST_TTL=3", *doctor]
    two_ranks = support.mpirun(2)[:-1]  # without Python, with which `doctor` begins
    code, said = support.run_unchecked(
        [*two_ranks, *doctor, ":", "-n", "1", *different], limit_s=LIMIT_S
    )
    assert code == 4, said
    assert "rank 2: MPIMCAST_TTL is 3, on most ranks 1" in " ".join(said.split())


@LIBRARIES
@pytest.mark.parametrize(
    "sleeps", ["after", pytest.param("before", marks=pytest.mark.long)]
)
def test_absent_rank(bin_folder: Path, sleeps: str) -> None:
    """The doctor reports a rank that never joins the others, and ends within 30 s.

    If that rank sleeps before MPI_Init, the others wait in the MPI library and cannot
    tell which rank is missing.
    """
    command = support.mpirun(NRANKS, bin_folder=bin_folder)
    begin_s = time.monotonic()
    code, said = support.run_unchecked([*command, "-c", ABSENT, sleeps], limit_s=40)
    assert time.monotonic() - begin_s < 30
    assert code not in {0, 3, support.TIMED_OUT}, said
    expected = "rank 1 does not answer" if sleeps == "after" else "in a call of MPI"
    assert expected in " ".join(said.split()), said
