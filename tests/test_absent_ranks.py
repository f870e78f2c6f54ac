# SPDX-License-Identifier: BSD-3-Clause
"""If a rank of a job ends or stays away, the other ranks name it, end, or go on."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import BIN, MPICH_BIN, TIMED_OUT, mpirun, run_unchecked

LIMIT_S = 90
LIBRARIES = pytest.mark.parametrize(
    "bin_folder", [BIN, MPICH_BIN], ids=["openmpi", "mpich"]
)
SIZES = pytest.mark.parametrize(
    ("bin_folder", "nranks"),
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

class AfterThirdWarning(logging.Handler):
    # Calls `act` once, when this rank logs its third line that contains `what`.
    def __init__(self, what, act):
        super().__init__()
        self.what, self.act, self.nlines = what, act, 0
        logging.getLogger("mpimcast").addHandler(self)
    def emit(self, record):
        if self.what not in record.getMessage():
            return
        self.nlines += 1
        if self.nlines == 3:
            self.act()
"""


def job(
    code: str,
    bin_folder: Path = BIN,
    *,
    nranks: int = 3,
    command: tuple[str, ...] = RUN,
    **settings: str,
) -> tuple[int, list[str]]:
    """Run `BEGIN` and then code on some ranks; return the status and the printed lines.

    The last rank, called `absent` in the code, is the one to end or to stay away. The
    test fails if the job does not end by itself. `command` goes between the launcher
    and the code; `settings` are environment variables besides SETTINGS.
    """
    launcher = mpirun(nranks, bin_folder=bin_folder)
    status, said = run_unchecked(
        [*launcher, *command, "-c", BEGIN + code],
        limit_s=LIMIT_S,
        **{**SETTINGS, **settings},  # type: ignore[arg-type]
    )
    assert status != TIMED_OUT, said
    return status, said.splitlines()


def lines_with(lines: list[str], *texts: str) -> list[str]:
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
    ids=["opening", "operation", "opening a duplicate", "request", "persistent"],
)
def test_a_rank_that_ends(
    bin_folder: Path, nranks: int, before: str, call: str
) -> None:
    """If a rank ends, the ranks that wait for it fail and name it; so the job ends."""
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
        bin_folder,
        nranks=nranks,
    )
    assert status != 0, lines
    assert lines_with(lines, "RankLeft", f"rank {nranks - 1} left without"), lines
    assert lines_with(lines, f"ranks ({nranks - 1},)"), lines


@LIBRARIES
def test_a_rank_that_fails(bin_folder: Path) -> None:
    """An uncaught exception ends the job, and the log names the rank that raised it."""
    status, lines = job(
        """
comm.Bcast(large)
if rank == absent:
    raise ValueError("what the user did")
comm.Bcast(large)
""",
        bin_folder,
    )
    assert status != 0, lines
    assert lines_with(lines, "[2] MPIMCAST ERROR", "ValueError: what the user did"), (
        lines
    )


@LIBRARIES
def test_ranks_that_end_properly(bin_folder: Path) -> None:
    """Operations complete though no rank waits for all of them; no rank is blamed.

    The ranks reach their ends at different times.
    """
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
# Rank 1 drops its requests and communicators here, the other ranks when they end.
if rank == 1:
    del requests, comms
say("end")
""",
        bin_folder,
        nranks=5,
        MPIMCAST_WARN_AFTER="inf",
    )
    assert status == 0, lines
    assert lines.count("end") == 5
    assert not lines_with(lines, "MPIMCAST"), lines
    assert not lines_with(lines, "Error"), lines


def test_programs_of_several_kinds() -> None:
    """A job ends by itself if only its rank 0 is under ``python -m mpimcast run``."""
    code = BEGIN + "say('end')"
    status, said = run_unchecked(
        [*mpirun(1), *RUN, "-c", code, ":", "-n", "2", BIN / "python", "-c", code],
        limit_s=LIMIT_S,
    )
    assert status == 0, said
    assert said.splitlines().count("end") == 3


# ---- ranks that stay away ------------------------------------------------------


@SIZES
def test_a_caught_mistake(bin_folder: Path, nranks: int) -> None:
    """If a call fails on one rank only, all ranks that wait for that rank name it.

    The rank catches the error, and joins the others once each has logged three
    warnings.
    """
    status, lines = job(
        """
comm.Bcast(large)
AfterThirdWarning("operation 2", lambda: world.send(None, absent))
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
        bin_folder,
        nranks=nranks,
    )
    assert status == 0, lines
    assert lines.count("end") == nranks
    assert lines.count("caught") == 1
    for rank in range(nranks - 1):
        whom = f"for rank {nranks - 1}, which has not entered it"
        what = "Bcast of 100000 bytes from rank 0, operation 2 of its communicator"
        warning = f"[{rank}] MPIMCAST WARN {what}, has waited"
        assert lines_with(lines, warning, whom), lines
    assert not lines_with(lines, f"[{nranks - 1}] MPIMCAST", "operation 2"), lines


def test_a_smaller_operation() -> None:
    """A rank that leaves a call to the MPI library is named, with its reason.

    The reason is that its buffer, unlike the others', is smaller than MIN_BYTES.
    """
    status, lines = job(
        """
comm.Bcast(large)
AfterThirdWarning("operation 2", lambda: world.Abort(3))
comm.Bcast(small if rank == 0 else large)
world.Barrier()
"""
    )
    assert status != 0, lines
    named = "for rank 0, which has not entered it"
    assert lines_with(lines, "MPIMCAST WARN", named, "fewer bytes than MIN_BYTES"), (
        lines
    )


# ---- agreeing and opening ----------------------------------------------------


@pytest.mark.parametrize(
    ("bin_folder", "command"),
    [
        pytest.param(BIN, (), id="openmpi-plain"),
        pytest.param(BIN, RUN, id="openmpi-run", marks=pytest.mark.long),
        pytest.param(MPICH_BIN, (), id="mpich-plain", marks=pytest.mark.long),
        pytest.param(MPICH_BIN, RUN, id="mpich-run"),
    ],
)
def test_an_agreement_without_a_rank(
    bin_folder: Path, command: tuple[str, ...]
) -> None:
    """Agreeing on a communicator fails after TIMEOUT, and names the absent ranks."""
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
        bin_folder,
        nranks=5,
        command=command,
    )
    assert status != 0, lines
    text = "not all ranks took part within 3 s: ranks 1, 4 have not arrived"
    assert lines_with(lines, "TimedOut: agreeing on a communicator", text), lines
    assert lines_with(lines, "ranks (1, 4)"), lines
    assert lines_with(lines, "[0] MPIMCAST WARN agreeing on a communicator"), lines


@LIBRARIES
def test_an_opening_without_a_rank(bin_folder: Path) -> None:
    """ENTRY_TIMEOUT ends an opening, and the error names the absent rank.

    A communicator that was opened earlier tells the ranks which one is absent.
    """
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
        bin_folder,
        command=(),
    )
    assert status != 0, lines
    text = "opening a communicator: not all ranks took part within 2 s: rank 2 has not"
    assert lines_with(lines, "TimedOut", text), lines
    assert lines_with(lines, "ranks (2,)"), lines


@LIBRARIES
def test_a_first_opening_without_a_rank(bin_folder: Path) -> None:
    """ENTRY_TIMEOUT ends a first opening; its error cannot name the absent rank."""
    status, lines = job(
        """
comm = mpimcast.Intracomm(world.Dup(), entry_timeout=2)
if rank == absent:
    threading.Event().wait()
comm.Bcast(large)
""",
        bin_folder,
        command=(),
    )
    assert status != 0, lines
    text = "the MPI library does not say which ranks are missing"
    assert lines_with(lines, "TimedOut: opening a communicator", text), lines
    assert lines_with(lines, "MPIMCAST WARN opening a communicator", text), lines


@LIBRARIES
def test_a_late_rank_in_an_agreement(bin_folder: Path) -> None:
    """A rank that arrives late, but within TIMEOUT, is named, and the job succeeds."""
    status, lines = job(
        """
comm = mpimcast.Intracomm(world.Dup(), timeout=60)
comm.Bcast(large)
AfterThirdWarning("agreeing", lambda: world.send(None, absent))
if rank == absent:
    for _ in range(size - 1):
        world.recv()
request = comm.Bcast_init(large)
request.Start()
request.Wait()
say("end")
""",
        bin_folder,
        nranks=5,
    )
    assert status == 0, lines
    assert lines.count("end") == 5
    for rank in range(4):
        warnings = lines_with(lines, f"[{rank}] MPIMCAST WARN agreeing")
        # Ranks that were only a moment late may be named before rank 4.
        named = ("rank 4 has not arrived", ", 4 have not arrived")
        assert any(text in line for line in warnings for text in named), lines
