# SPDX-License-Identifier: BSD-3-Clause
"""Jobs in which a rank is absent: the other ranks name it, or end."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import BIN, MPICH_BIN, TIMED_OUT, mpirun, run_unchecked

LIMIT_S = 90
LIBRARIES = pytest.mark.parametrize(
    "environment", [BIN, MPICH_BIN], ids=["openmpi", "mpich"]
)
SIZES = pytest.mark.parametrize(
    ("environment", "nranks"),
    [
        pytest.param(BIN, 5, id="openmpi-5"),
        pytest.param(MPICH_BIN, 3, id="mpich-3"),
        pytest.param(MPICH_BIN, 2, id="mpich-2", marks=pytest.mark.long),
    ],
)
RUN = ("-m", "mpimcast", "run")
SETTINGS = {
    "MPIMCAST_TRANSPORT": "udp",
    "MPIMCAST_WARN_AFTER": "0.2",
    "MPIMCAST_TIMEOUT": "3",
}

BEGIN = """
import logging, os, sys, threading
import numpy as np
from mpi4py import MPI
import mpimcast

world = MPI.Intracomm(MPI.COMM_WORLD)
comm = mpimcast.Intracomm(MPI.COMM_WORLD)
rank, size = comm.rank, comm.size
absent = size - 1
large, small = np.zeros(100_000, np.uint8), np.zeros(8, np.uint8)

def say(word):
    os.write(1, (word + chr(10)).encode())

class Handler(logging.Handler):
    # Has `act` done when this rank has for the third time warned of a wait.
    def __init__(self, what, act):
        super().__init__()
        self.what, self.act, self.nlines = what, act, 0
        logging.getLogger("mpimcast").addHandler(self)
    def emit(self, record):
        self.nlines += self.what in record.getMessage()
        if self.nlines == 3:
            self.nlines += 1
            self.act()
"""


def job(
    code: str,
    environment: Path = BIN,
    *,
    nranks: int = 3,
    command: tuple[str, ...] = RUN,
    **settings: str,
) -> tuple[int, list[str]]:
    """Run code on some ranks; return the status and the lines printed."""
    launcher = mpirun(nranks, environment=environment)
    status, said = run_unchecked(
        [*launcher, *command, "-c", BEGIN + code],
        limit_s=LIMIT_S,
        **{**SETTINGS, **settings},  # type: ignore[arg-type]
    )
    assert status != TIMED_OUT, said
    return status, said.splitlines()


def having(lines: list[str], *texts: str) -> list[str]:
    """Return the lines that contain all these texts."""
    return [line for line in lines if all(text in line for text in texts)]


# ---- ranks that end ----------------------------------------------------------


@SIZES
@pytest.mark.parametrize(
    ("before", "call"),
    [
        ("pass", "comm.Bcast(large)"),
        ("comm.Bcast(large)", "comm.Bcast(large)"),
        ("comm.Bcast(large); comm = comm.Dup()", "comm.Bcast(large)"),
        pytest.param(
            "comm.Bcast(large)", "comm.Ibcast(large).Wait()", marks=pytest.mark.long
        ),
        pytest.param(
            "comm.Bcast(large)", "comm.Bcast_init(large)", marks=pytest.mark.long
        ),
    ],
    ids=["opening", "operation", "opening a duplicate", "request", "preparing"],
)
def test_a_rank_that_ends(
    environment: Path, nranks: int, before: str, call: str
) -> None:
    """Ranks that wait for one that has ended fail at once, name it, and end the job."""
    status, lines = job(
        f"""
{before}
if rank == absent:
    sys.exit(0)
try:
    {call}
except mpimcast.RankLeft as error:
    say(f"ranks {{error.ranks}}")
    raise
""",
        environment,
        nranks=nranks,
    )
    assert status != 0, lines
    assert having(lines, "RankLeft", f"rank {nranks - 1} left without"), lines
    assert having(lines, f"ranks ({nranks - 1},)"), lines


@LIBRARIES
def test_a_rank_that_fails(environment: Path) -> None:
    """An uncaught exception ends the job, and its rank is named."""
    status, lines = job(
        """
comm.Bcast(large)
if rank == absent:
    raise ValueError("what the user did")
comm.Bcast(large)
""",
        environment,
    )
    assert status != 0, lines
    assert having(lines, "[2] MPIMCAST ERROR", "ValueError: what the user did"), lines


@LIBRARIES
def test_ranks_that_end_properly(environment: Path) -> None:
    """Ranks that end properly complete what they started, and no rank is blamed."""
    status, lines = job(
        """
comms = [comm.Dup() for _ in range(3)]
for each in comms:
    each.Bcast(large)
requests = [each.Ibcast(large) for each in comms for _ in range(6)]
persistent = comms[0].Bcast_init(large)
persistent.Start()
if rank == 0:
    comms.reverse()
    requests[0].Wait()
# Some are freed, in the same order, others closed at the end, each where it will.
if rank == 1:
    del requests, comms
say("end")
""",
        environment,
        nranks=5,
        MPIMCAST_WARN_AFTER="inf",
    )
    assert status == 0, lines
    assert lines.count("end") == 5
    assert not having(lines, "MPIMCAST"), lines
    assert not having(lines, "Error"), lines


def test_programs_of_several_kinds() -> None:
    """A job ends by itself where only some ranks have this library's communicators."""
    code = BEGIN + "say('end')"
    status, said = run_unchecked(
        [*mpirun(1), *RUN, "-c", code, ":", "-n", "2", BIN / "python", "-c", code],
        limit_s=LIMIT_S,
    )
    assert status == 0, said
    assert said.splitlines().count("end") == 3


# ---- ranks that are elsewhere --------------------------------------------------


@SIZES
def test_a_caught_mistake(environment: Path, nranks: int) -> None:
    """A rank that catches its mistake and goes on alone is named by all others."""
    status, lines = job(
        """
comm.Bcast(large)
Handler("operation 2", lambda: world.send(None, absent))
if rank == absent:
    try:
        comm.Bcast(large, root=size)
    except MPI.Exception:
        say("caught")
    for _ in range(size - 1):
        world.recv()
comm.Bcast(large)
say("end")
""",
        environment,
        nranks=nranks,
    )
    assert status == 0, lines
    assert lines.count("end") == nranks
    assert lines.count("caught") == 1
    for rank in range(nranks - 1):
        whom = f"for rank {nranks - 1}, which has not entered it"
        what = "Bcast of 100000 bytes from rank 0, operation 2 of its communicator"
        assert having(lines, f"[{rank}] MPIMCAST WARN {what}, has waited", whom), lines
    assert not having(lines, f"[{nranks - 1}] MPIMCAST", "operation 2"), lines


def test_a_smaller_operation() -> None:
    """A rank below MIN_BYTES, in the MPI library, is named with that reason."""
    status, lines = job(
        """
comm.Bcast(large)
Handler("operation 2", lambda: world.Abort(3))
comm.Bcast(small if rank == 0 else large)
world.Barrier()
"""
    )
    assert status != 0, lines
    named = "for rank 0, which has not entered it"
    assert having(lines, "MPIMCAST WARN", named, "fewer bytes than MIN_BYTES"), lines


# ---- agreeing and opening ----------------------------------------------------


@pytest.mark.parametrize(
    ("environment", "command"),
    [
        pytest.param(BIN, (), id="openmpi-plain"),
        pytest.param(BIN, RUN, id="openmpi-run", marks=pytest.mark.long),
        pytest.param(MPICH_BIN, (), id="mpich-plain", marks=pytest.mark.long),
        pytest.param(MPICH_BIN, RUN, id="mpich-run"),
    ],
)
def test_an_agreement_without_a_rank(
    environment: Path, command: tuple[str, ...]
) -> None:
    """After TIMEOUT an agreement fails, names the absent ranks, and ends the job."""
    status, lines = job(
        """
comm.Bcast(large)
if rank in (absent, 1):
    threading.Event().wait()
try:
    comm.Bcast_init(large)
except mpimcast.TimedOut as error:
    say(f"ranks {error.ranks}")
    raise
""",
        environment,
        nranks=5,
        command=command,
    )
    assert status != 0, lines
    text = "not all ranks took part within 3 s: ranks 1, 4 have not arrived"
    assert having(lines, "TimedOut: agreeing on a communicator", text), lines
    assert having(lines, "ranks (1, 4)"), lines
    assert having(lines, "[0] MPIMCAST WARN agreeing on a communicator"), lines


@LIBRARIES
def test_an_opening_without_a_rank(environment: Path) -> None:
    """ENTRY_TIMEOUT ends an opening; an earlier communicator tells who is absent."""
    status, lines = job(
        """
comm.Bcast(large)
derived = mpimcast.Intracomm(world.Dup(), entry_timeout=2)
if rank == absent:
    threading.Event().wait()
try:
    derived.Bcast(large)
except mpimcast.TimedOut as error:
    say(f"ranks {error.ranks}")
    raise
""",
        environment,
        command=(),
    )
    assert status != 0, lines
    text = "opening a communicator: not all ranks took part within 2 s: rank 2 has not"
    assert having(lines, "TimedOut", text), lines
    assert having(lines, "ranks (2,)"), lines


@LIBRARIES
def test_a_first_opening_without_a_rank(environment: Path) -> None:
    """A first opening ends with an error that cannot name the absent rank."""
    status, lines = job(
        """
comm = mpimcast.Intracomm(world.Dup(), entry_timeout=2)
if rank == absent:
    threading.Event().wait()
comm.Bcast(large)
""",
        environment,
        command=(),
    )
    assert status != 0, lines
    text = "the MPI library does not say which ranks are missing"
    assert having(lines, "TimedOut: opening a communicator", text), lines
    assert having(lines, "MPIMCAST WARN opening a communicator", text), lines


@LIBRARIES
def test_a_late_rank_in_an_agreement(environment: Path) -> None:
    """A rank that is late, but within TIMEOUT, is named, and the job succeeds."""
    status, lines = job(
        """
comm = mpimcast.Intracomm(world.Dup(), timeout=60)
comm.Bcast(large)
Handler("agreeing", lambda: world.send(None, absent))
if rank == absent:
    for _ in range(size - 1):
        world.recv()
request = comm.Bcast_init(large)
request.Start()
request.Wait()
say("end")
""",
        environment,
        nranks=5,
    )
    assert status == 0, lines
    assert lines.count("end") == 5
    for rank in range(4):
        assert having(lines, f"[{rank}] MPIMCAST WARN agreeing", "4 ha"), lines
