# SPDX-License-Identifier: BSD-3-Clause
"""The guest's devices and commands work, and failures in it harm nothing else."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import support

from bench.guest.guest import Died, Failed, Guest

NDEVICES = 4

# Runs a server and a client on different devices, then prints how many packets the
# switch has sent to each.
PINGPONG = """
ibv_rc_pingpong -e -n 50 -g 1 -d rxe0 &
until ibv_rc_pingpong -e -n 50 -g 1 -d rxe1 10.8.0.1; do sleep 0.1; done
wait $!
echo ports:
cat /sys/class/net/port[01]/statistics/tx_packets
"""

# An MPI program without mpimcast.
HELLO = """
import numpy as np
from mpi4py import MPI
comm = MPI.COMM_WORLD
gathered = np.empty(comm.size, dtype=np.int32)
comm.Allgather(np.full(1, comm.rank, dtype=np.int32), gathered)
assert (gathered == np.arange(comm.size)).all()
print("hello", comm.rank)
"""

# Starts a guest, prints its process group, and keeps it until standard input ends.
OWNER = """
import sys
from pathlib import Path
from bench.guest.guest import Guest
with Guest(Path(sys.argv[1]), devices=0) as guest:
    print(guest.process.pid, flush=True)
    guest.run(["sleep", "1"], limit_s=5)
    sys.stdin.read()
"""


@pytest.fixture(scope="module")
def four(linux: Path) -> Iterator[Guest]:
    """Yield a guest with four devices for these tests only."""
    with Guest(linux, devices=NDEVICES) as guest:
        yield guest


def test_devices(four: Guest) -> None:
    """The guest has the requested number of active devices, with 4096 bytes of MTU."""
    support.require_tool("ibv_devinfo")
    output = four.run(["ibv_devinfo"], limit_s=30)
    names = [f"rxe{number}" for number in range(NDEVICES)]
    assert sorted(re.findall(r"hca_id:\s*(\w+)", output)) == names
    assert output.count("PORT_ACTIVE (4)") == NDEVICES
    assert len(re.findall(r"active_mtu:\s*4096 ", output)) == NDEVICES


def test_devices_talk(four: Guest) -> None:
    """A reliable connection between two devices works, and goes through the switch."""
    support.require_tool("ibv_rc_pingpong")
    output = four.run(["bash", "-c", PINGPONG], limit_s=60)
    assert output.count("50 iters in") == 2
    ports = output.split("ports:")[1].split()
    assert int(ports[0]) > 50
    assert int(ports[1]) > 50


def test_mpi(four: Guest) -> None:
    """This environment's MPI and Python run four ranks in the guest."""
    (four.work / "hello.py").write_text(HELLO)
    output = four.run([*support.mpirun(4), "hello.py"], limit_s=60)
    hello = [line for line in output.splitlines() if line.startswith("hello")]
    assert sorted(hello) == [f"hello {rank}" for rank in range(4)]


@pytest.mark.parametrize("status", [0, 3, 255])
def test_status(four: Guest, status: int) -> None:
    """The caller gets a command's exit status, and both its outputs as one text."""
    command = ["sh", "-c", f"echo one; echo two >&2; exit {status}"]
    assert four.run_unchecked(command, limit_s=20) == (status, "one\ntwo\n")
    if status != 0:
        with pytest.raises(Failed, match=rf"status {status} in.*\none\ntwo"):
            four.run(command, limit_s=20)


def test_signal(four: Guest) -> None:
    """If a signal ends a command, its status is 128 + the signal, as in a shell."""
    status, _ = four.run_unchecked(["sh", "-c", "kill -SEGV $$"], limit_s=20)
    assert status == 128 + signal.SIGSEGV


def test_arguments_arrive_unchanged(four: Guest, tmp_path: Path) -> None:
    """Arguments, variables and folders may contain characters special to a shell."""
    special = "a 'b' \"c\" $d `e` \\ *\n"
    folder = tmp_path / "with blanks"
    folder.mkdir()
    printf = ["sh", "-c", 'printf "%s" "$1" "$SPECIAL"; pwd', "sh", special]
    output = four.run(printf, limit_s=20, cwd=folder, SPECIAL=special)
    assert output == f"{special}{special}{folder}\n"


def test_files(four: Guest, tmp_path: Path) -> None:
    """The guest can change the host's files in its work folder, and nowhere else."""
    (four.work / "hosts").write_text("from the host")
    assert four.run(["cat", "hosts"], limit_s=20) == "from the host"
    four.run(["cp", "hosts", "guests"], limit_s=20)
    assert (four.work / "guests").read_text() == "from the host"
    status, output = four.run_unchecked(["touch", tmp_path / "file"], limit_s=20)
    assert status != 0
    assert "Read-only file system" in output


def test_hang(four: Guest) -> None:
    """A command that exceeds its limit is ended; its processes and files are gone."""
    begin_s = time.monotonic()
    hang = ["sh", "-c", "touch /dev/shm/left; setsid sleep 1234 & sleep 1234"]
    status, _ = four.run_unchecked(hang, limit_s=1)
    assert status == support.TIMED_OUT
    assert time.monotonic() - begin_s < 10
    left = four.run(["sh", "-c", "ls /dev/shm; cat /proc/[0-9]*/cmdline"], limit_s=20)
    assert "left" not in left
    assert "1234" not in left


def test_panic(linux: Path) -> None:
    """If the kernel panics, the error says why; the next command gets a new guest."""
    panic = "echo 2 >/proc/sys/vm/panic_on_oom; tail /dev/zero"
    with Guest(linux, devices=0, memory="128M") as guest:
        with pytest.raises(Died, match=r"has ended(.|\n)*panic(.|\n)*Out of memory"):
            guest.run(["sh", "-c", panic], limit_s=60)
        assert guest.run(["echo", "again"], limit_s=20) == "again\n"


def test_idle(four: Guest) -> None:
    """Between commands the guest uses less than a tenth of a processor."""
    four.run(["true"], limit_s=20)
    before = _cpu_ticks(four)
    time.sleep(1)
    assert _cpu_ticks(four) - before < 10


def test_a_killed_owner_leaves_no_guest(linux: Path, tmp_path: Path) -> None:
    """The guest ends when the process that started it is killed."""
    errors = tmp_path / "errors"
    with errors.open("w") as stderr:
        owner = subprocess.Popen(
            [sys.executable, "-c", OWNER, linux],
            cwd=support.ROOT,
            env={**os.environ, "TMPDIR": str(tmp_path)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        )
    assert owner.stdout is not None
    assert owner.stdin is not None
    with owner.stdout, owner.stdin:
        told = owner.stdout.readline()
        assert told, f"the owner has no guest: {errors.read_text()}"
        group = int(told)
        assert _processes(group), f"the guest has ended: {errors.read_text()}"
        owner.kill()
        owner.wait()
    deadline_s = time.monotonic() + 20
    while _processes(group):
        assert time.monotonic() < deadline_s
        time.sleep(0.05)


def _processes(group: int) -> list[list[str]]:
    """Return, for each live process of a group, the fields of /proc/PID/stat.

    The first two fields, number and name, are left out: 0 is the state, 2 the process
    group.
    """
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(") ")[2].split()
        except OSError:
            continue
        if int(fields[2]) == group and fields[0] != "Z":
            found.append(fields)
    return found


def _cpu_ticks(guest: Guest) -> int:
    """Return the processor time of the guest's processes, in hundredths of a second."""
    processes = _processes(guest.process.pid)
    assert processes, "the guest has ended"
    # User time and system time.
    return sum(int(fields[11]) + int(fields[12]) for fields in processes)
