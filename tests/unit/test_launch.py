# SPDX-License-Identifier: BSD-3-Clause
"""Processes that take the places of an MPI job's ranks."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from support import BIN, run

from mpimcast._launch import address, job, mpirun, place, remote_shell, sockets
from mpimcast._launch.mpirun import LauncherError

TOKEN = f"test-{os.getpid()}"


class Words:
    """A store of one process."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}

    def set(self, key: str, value: str) -> None:
        """Store a value."""
        self.values[key] = value

    def get(self, key: str) -> bytes:
        """Return a value, which nobody else could store if it is not there."""
        return self.values[key].encode()


def test_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """A place is what another process had, with its descriptors, and no more."""
    reading, writing = os.pipe()
    monkeypatch.setattr(os, "environ", {"PMIX_RANK": "9", "PMI_OLD": "1", "HOME": "h"})
    given = place.Place({"PMI_RANK": "3"}, {"PMI_FD": writing})
    here, there = socket.socketpair()
    with here, there:
        place.send(here, given)
        os.close(writing)
        received = place.receive(there)
    received.take()
    descriptor = received.descriptors["PMI_FD"]
    expected = {"PMI_RANK": "3", "PMI_FD": str(descriptor), "HOME": "h"}
    assert os.environ == expected
    assert place.own() == received
    os.write(descriptor, b"x")
    assert os.read(reading, 2) == b"x"
    for each in (reading, descriptor):
        os.close(each)


def test_a_place_cut_short() -> None:
    """A relay that dies while it sends leaves no place."""
    here, there = socket.socketpair()
    with there:
        here.sendall(b'\0[{"PMI_RANK": "3"}')
        here.close()
        with pytest.raises(EOFError):
            place.receive(there)


def test_environment_of_launchers() -> None:
    """Launchers get what users set for them, and nothing of an outer job."""
    users = {"OMPI_MCA_btl": "tcp,self", "PRTE_MCA_x": "1", "PATH": "/bin"}
    outer = {"PMI_RANK": "1", "PMIX_RANK": "1", "OMPI_COMM_WORLD_RANK": "1"}
    batch = {"SLURM_JOB_ID": "7", "PBS_JOBID": "7"}
    assert place.without({**users, **outer, **batch}) == users


@pytest.mark.parametrize(
    ("version", "several"),
    [
        ("mpirun (Open MPI) 5.0.11", "--prtemca plm ssh --prtemca plm_ssh_agent SHELL"),
        ("mpirun (Open MPI) 10.1.0", "--prtemca plm ssh --prtemca plm_ssh_agent SHELL"),
        ("mpirun (Open MPI) 4.1.4", "--mca plm rsh --mca plm_rsh_agent SHELL"),
        ("HYDRA build details:", "-launcher ssh -launcher-exec SHELL -hosts a:2,b:1"),
    ],
)
def test_commands(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, version: str, several: str
) -> None:
    """Each launcher is told the number of ranks, and if need be hosts and a shell."""
    script = tmp_path / "mpirun"
    script.write_text(f"#!/bin/sh\necho '{version}'\n")
    script.chmod(0o700)
    monkeypatch.setattr(mpirun, "find", lambda: str(script))
    said = " ".join(mpirun.command({"a": 3}, "SHELL"))
    assert said.startswith(f"{script} -n 3")
    assert "SHELL" not in said
    assert several in " ".join(mpirun.command({"a": 2, "b": 1}, "SHELL"))


def test_unknown_launchers(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says what the launcher is, or that there is none."""
    monkeypatch.setattr(mpirun, "find", lambda: "/bin/echo")
    with pytest.raises(LauncherError, match="/bin/echo is neither Open MPI's"):
        mpirun.command({"a": 1}, "")
    monkeypatch.setattr(mpirun, "find", lambda: None)
    with pytest.raises(LauncherError, match="there is no mpirun"):
        mpirun.command({"a": 1}, "")


@pytest.mark.parametrize("program", ["false", "true"])
def test_a_launcher_that_ends(monkeypatch: pytest.MonkeyPatch, program: str) -> None:
    """Rank 0 notices, and says how it was called."""
    monkeypatch.setattr(mpirun, "command", lambda *_: [program])
    status = 1 if program == "false" else 0
    with pytest.raises(
        LauncherError, match=f"ended with status {status} .*`{program}`"
    ):
        job.join(job.Process(0, 1, "host"), Words())


def test_no_relay(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process waits for its relay for a limited time."""
    monkeypatch.setattr(job, "_LIMIT_S", 0.1)
    store = Words()
    store.set("agreed", json.dumps([TOKEN, {"host": [5, 1]}]))
    with pytest.raises(LauncherError, match=r"no relay for this process in 0\.1 s"):
        job.join(job.Process(1, 2, "host"), store)


def test_join() -> None:
    """A process takes the only place of a job, and MPI finds it."""
    program = (
        "from mpimcast._launch import job; import test_launch; "
        "job.join(job.Process(0, 1, 'host'), test_launch.Words()); "
        "from mpi4py import MPI; import os; "
        "print(MPI.COMM_WORLD.Get_size(), os.environ['PMIX_RANK'])"
    )
    outer = {"PYTHONPATH": "..", "PMIX_RANK": "5", "SLURM_JOB_ID": "7"}
    command = [BIN / "python", "-c", program]
    said = run(command, limit_s=60, cwd=Path(__file__).parent, **outer)
    assert said.endswith("1 0\n"), said


def test_remote_shell() -> None:
    """What a launcher would have ssh do comes to the process that has launched it."""
    with sockets.listen(TOKEN, remote_shell.PURPOSE) as listener:
        words = ("-x", "-q", "host-3", "orted", "--here", '"a b"')
        program = [sys.executable, "-m", "mpimcast._launch.remote_shell", TOKEN]
        with subprocess.Popen([*program, *words]) as shell:
            connection = sockets.accept(listener)
            assert connection is not None
            found = remote_shell.receive(connection)
            assert shell.poll() is None
            connection.close()
        assert shell.returncode == 0
    assert found == ("host-3", 'orted --here "a b"')


def test_other_users() -> None:
    """A connection of another user is closed."""
    if os.geteuid() != 0:
        pytest.skip("only root can be another user")
    with sockets.listen(TOKEN, "x") as listener:
        other = os.fork()
        if other == 0:
            try:
                os.setuid(65534)
                sockets.connect(TOKEN, "x").recv(1)
                os._exit(0)
            finally:
                os._exit(1)
        assert sockets.accept(listener) is None
        assert os.waitpid(other, 0) == (other, 0)
        with closing(sockets.connect(TOKEN, "x")):
            connection = sockets.accept(listener)
            assert connection is not None
            connection.close()


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.1.1", "localhost", "::1"])
def test_addresses_of_no_use_elsewhere(host: str) -> None:
    """A host is called by its name if others cannot use its address."""
    try:
        found = address.towards(host, 1)
    except OSError:
        pytest.skip(f"this machine has no {host}")
    assert found == socket.gethostname()


def test_address() -> None:
    """A host is called by the address from which it sends to others, if it can send."""
    try:
        found = address.towards("192.0.2.1", 1)
    except OSError:
        pytest.skip("this machine has no way to other hosts")
    assert found.count(".") == 3
    assert address.towards(found, 1) == found


def test_hosts() -> None:
    """Processes agree on hosts in the order of their first ranks."""
    store = Words()
    for rank, host in enumerate(["b", "a", "b", "a", "c"]):
        store.set(f"address/{rank}", host)
    process = job.Process(0, 5, "b")
    token, hosts = job.agree(process, store)
    assert hosts == {"b": [0, 2], "a": [1, 3], "c": [4]}
    assert json.loads(store.get("agreed")) == [token, hosts]
