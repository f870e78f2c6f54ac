# SPDX-License-Identifier: BSD-3-Clause
"""A failure is raised on all ranks, with words that help, and hangs no rank."""

from __future__ import annotations

import logging
import os
import re
import signal
import threading
from collections.abc import Callable
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from mpi4py import MPI

from mpimcast import Error, Intracomm, TimedOut
from mpimcast._mpi import agreement
from mpimcast._native import core
from mpimcast._support import log

Make = Callable[..., Intracomm]

# A value of the setting FAULT: no data arrives, neither at first nor as a repair, while
# control messages do.
ALL_DATA_LOST = "loss=1,kind=multicast+repair"


def gather(comm: Intracomm, nbytes: int = 30_000) -> None:
    """Gather `nbytes` of each rank, by default more than an entry barrier carries."""
    comm.Allgather(np.zeros(nbytes, np.uint8), np.zeros(comm.size * nbytes, np.uint8))


def require_two_ranks(comm: MPI.Intracomm) -> None:
    """Skip the test if there is only one rank."""
    if comm.size == 1:
        pytest.skip("needs a second rank")


# Chunks have 512 bytes.
@pytest.mark.parametrize("nbytes", [10, 3000], ids=["one chunk", "several chunks"])
def test_different_sizes(make_comm: Make, nbytes: int) -> None:
    """Blocks of different sizes are an error that names the sizes."""
    comm = make_comm()
    require_two_ranks(comm)
    gather(comm)
    mine = nbytes + (comm.rank == comm.size - 1)
    with pytest.raises(
        Error, match=f"{nbytes} bytes on .*{nbytes + 1} bytes on"
    ) as caught:
        gather(comm, mine)
    assert caught.value.epoch is not None
    assert f"of {mine} bytes a rank" in str(caught.value)
    assert f"rank {comm.rank} of {comm.size}" in str(caught.value)
    with pytest.raises(Error, match=r"unusable .* since its operation") as later:
        gather(comm)
    assert f"but {nbytes + 1} bytes on rank {comm.size - 1}" in str(later.value)


def test_own_sizes_differ(comm: Intracomm) -> None:
    """If a rank's sendbuf and recvbuf do not fit, that rank raises an error at once.

    No other rank learns of it, and the communicator can still be used.
    """
    require_two_ranks(comm)
    with pytest.raises(Error, match="sends 2 bytes, but recvbuf has 3 bytes"):
        comm.Allgather(bytes(2), bytearray(3 * comm.size))
    gather(comm)


def test_a_rank_that_enters_too_late(make_comm: Make, mpi_comm: MPI.Intracomm) -> None:
    """ENTRY_TIMEOUT ends the wait for a live rank, and all ranks' errors name it."""
    for late in range(mpi_comm.size):
        comm = make_comm(entry_timeout=0.5)
        require_two_ranks(comm)
        gather(comm)
        # The late rank enters once all others have given up waiting for it.
        if comm.rank == late:
            mpi_comm.Barrier()
        with pytest.raises(TimedOut, match=rf"rank {late} .*ENTRY_TIMEOUT") as caught:
            gather(comm)
        assert caught.value.ranks == (late,)
        if comm.rank != late:
            mpi_comm.Barrier()


def test_a_rank_that_opens_too_late(make_comm: Make, mpi_comm: MPI.Intracomm) -> None:
    """The wait for a rank that has not begun to open the transport ends, too."""
    comm = make_comm(entry_timeout=0.3, timeout=0.5)
    require_two_ranks(comm)
    # Rank 0 begins once all others have given up waiting for it.
    if comm.rank == 0:
        mpi_comm.Barrier()
    with pytest.raises(TimedOut):
        gather(comm)
    if comm.rank != 0:
        mpi_comm.Barrier()


def test_lateness_is_no_error(make_comm: Make, mpi_comm: MPI.Intracomm) -> None:
    """Without ENTRY_TIMEOUT ranks wait for a live rank for longer than TIMEOUT."""
    comm = make_comm(timeout=0.2)
    require_two_ranks(comm)
    gather(comm)
    if comm.rank == 0:
        threading.Event().wait(1)
    gather(comm)
    mpi_comm.Barrier()


@pytest.mark.parametrize(
    "others_enter", [False, pytest.param(True, marks=pytest.mark.network)]
)
def test_interrupt(
    make_comm: Make, mpi_comm: MPI.Intracomm, others_enter: bool
) -> None:
    """Ctrl-C raises KeyboardInterrupt on the rank that gets it, and Error on others.

    The interrupted rank waits for others to enter or, if `others_enter`, for data that
    never comes. Afterwards its buffers are its own again.
    """
    fault = ALL_DATA_LOST if others_enter else ""
    comm = make_comm(fault=fault, eager_bytes=0, timeout=30)
    require_two_ranks(comm)
    block = np.zeros(3000, np.uint8)
    place = np.zeros(comm.size * 3000, np.uint8)
    # Making a persistent request opens the transport and gathers nothing.
    comm.Allgather_init(block, place).Free()
    victim = 0
    # In the barrier the others wait until the victim has been interrupted; if they are
    # to enter the operation before, they come to the barrier after it.
    if comm.rank == victim:
        timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            comm.Allgather(block, place)
        place.fill(7)
        mpi_comm.Barrier()
        assert (place == 7).all()
    else:
        if not others_enter:
            mpi_comm.Barrier()
        with pytest.raises(Error, match=f"rank {victim} was interrupted"):
            comm.Allgather(block, place)
        if others_enter:
            mpi_comm.Barrier()
    with pytest.raises(Error):
        gather(comm)


@pytest.mark.network
def test_no_progress(make_comm: Make) -> None:
    """A network that delivers no data is an error after TIMEOUT, not a hang."""
    comm = make_comm(fault=ALL_DATA_LOST, timeout=0.5)
    require_two_ranks(comm)
    with pytest.raises(TimedOut, match="TIMEOUT") as caught:
        gather(comm)
    assert caught.value.missing_chunks > 0
    assert caught.value.epoch is not None


def test_freeing_after_failure(mpi_comm: MPI.Intracomm) -> None:
    """After a failure no rank has to wait in Free for another one."""
    comm = Intracomm(
        mpi_comm.Dup(),
        transport="udp",
        min_bytes=0,
        timeout=0.5,
        fault=ALL_DATA_LOST,
    )
    require_two_ranks(comm)
    with pytest.raises(Error):
        gather(comm)
    # Rank 0 frees the communicator before any other rank, which comes to Free only
    # after the barrier.
    if comm.rank == 0:
        comm.Free()
        mpi_comm.Barrier()
    else:
        mpi_comm.Barrier()
        comm.Free()


class Lines(logging.Handler):
    """Keeps the lines that this rank logs, and calls a function after some of them.

    Parameters
    ----------
    number
        How many lines must have been logged for `tell` to be called.
    tell
        Called once, by the thread that logs the last of these lines.

    Attributes
    ----------
    lines : list of str
        The lines as they were logged.
    """

    def __init__(self, number: int, tell: Callable[[], None]) -> None:
        super().__init__()
        self.lines: list[str] = []
        self._number, self._tell = number, tell
        self.setFormatter(log.logger.handlers[0].formatter)

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a line, and call `tell` if it is the last that must come before."""
        self.lines.append(self.format(record))
        if len(self.lines) == self._number:
            self._tell()


@pytest.mark.parametrize("late", [0, -1])
@pytest.mark.parametrize("what", ["operation", "request", "preparing"])
def test_a_long_wait_is_logged(
    make_comm: Make, mpi_comm: MPI.Intracomm, late: int, what: str
) -> None:
    """Ranks log, at intervals that double, which rank they are waiting for.

    They wait in a blocking operation, for a request, or for a persistent request to be
    made. The late rank comes when each of the others has logged three lines.
    """
    comm = make_comm(warn_after=0.1)
    require_two_ranks(comm)
    late %= comm.size
    handler = Lines(3, lambda: mpi_comm.send(None, late))
    gather(comm)
    log.logger.addHandler(handler)
    if comm.rank == late:
        for _ in range(comm.size - 1):
            mpi_comm.recv()
    block = np.zeros(3000, np.uint8)
    place = np.zeros(comm.size * 3000, np.uint8)
    if what == "operation":
        comm.Allgather(block, place)
    elif what == "request":
        comm.Iallgather(block, place).Wait()
    else:
        comm.Allgather_init(block, place).Free()
    mpi_comm.Barrier()
    log.logger.removeHandler(handler)
    if comm.rank == late:
        return
    where = rf"\S+:{os.getpid()}:\d+ \[{comm.rank}\] MPIMCAST WARN "
    whom = (
        "agreeing on a communicator has waited (.*) s: .*"
        if what == "preparing"
        else r"Allgather of 3000 bytes a rank, operation 2 of its communicator, has "
        f"waited (.*) s for rank {late}, which has not entered it: .*"
    )
    # The first lines may also name ranks that are only slow to agree, so it is enough
    # that one line names `late`.
    assert any(f"rank {late}" in line for line in handler.lines)
    found = [re.fullmatch(where + whom, line) for line in handler.lines]
    assert all(found), handler.lines
    # WARN_AFTER is 0.1 s; 10 % are left for the clock.
    waits_s = [float(each[1]) for each in found if each]
    assert all(after >= 0.09 * 2**k for k, after in enumerate(waits_s)), waits_s


def test_waits_leave_nothing_behind(mpi_comm: MPI.Intracomm) -> None:
    """Ranks that wait ask who is missing; this never reaches a later communicator.

    In turn each rank is late, until all others have logged that they wait for it.
    """
    require_two_ranks(mpi_comm)
    for turn in range(12):
        comm = Intracomm(
            mpi_comm.Dup(), transport="udp", min_bytes=0, warn_after=0.02, timeout=20
        )
        gather(comm)
        late = turn % comm.size
        handler = Lines(1, lambda late=late: mpi_comm.send(None, late))
        log.logger.addHandler(handler)
        if comm.rank == late:
            for _ in range(comm.size - 1):
                mpi_comm.recv()
        place = np.zeros((comm.size, 100), int)
        request = comm.Allgather_init(np.full(100, comm.rank), place)
        log.logger.removeHandler(handler)
        request.Start()
        request.Wait()
        request.Free()
        assert (place == np.arange(comm.size)[:, None]).all()
        comm.Free()


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ((agreement, "__version__", "9.9.9"), "version of mpimcast is .* '9.9.9' on"),
        (
            (agreement, "sys", SimpleNamespace(byteorder="middle")),
            "byte order is .* 'middle' on",
        ),
        (
            (core, "wire_version", lambda: 999),
            r"wire format: \d+ on rank.*, but 999 on rank",
        ),
    ],
    ids=["version", "byte order", "wire version"],
)
def test_versions_that_differ(
    make_comm: Make,
    monkeypatch: pytest.MonkeyPatch,
    change: tuple[ModuleType, str, object],
    text: str,
) -> None:
    """If one rank has another version or byte order, all ranks' errors name it."""
    comm = make_comm()
    require_two_ranks(comm)
    different = comm.size - 1
    if comm.rank == different:
        monkeypatch.setattr(*change)
    with pytest.raises(Error, match=text) as caught:
        gather(comm)
    assert f"rank {different}" in str(caught.value)
    with pytest.raises(Error, match=text):
        gather(comm)


@pytest.mark.parametrize("why", ["sizes differ", "no progress"])
def test_another_communicator_after_a_failure(
    mpi_comm: MPI.Intracomm, why: str
) -> None:
    """After a failure the communicator can be freed, and a new one works."""
    lossy = {"fault": ALL_DATA_LOST, "timeout": 0.5}
    settings = {"transport": "udp", "min_bytes": 0}
    comm = Intracomm(
        mpi_comm.Dup(), **settings, **(lossy if why == "no progress" else {})
    )
    require_two_ranks(comm)
    for run in (gather, lambda comm, n: comm.Ibcast(np.zeros(n)).Wait()):
        with pytest.raises(Error):
            run(comm, 30_000 + (why == "sizes differ" and comm.rank == 0))
    again = Intracomm(mpi_comm.Dup(), **settings)
    gather(again)
    comm.Free()
    place = np.zeros((again.size, 3000), int)
    again.Iallgather(np.full(3000, again.rank), place).Wait()
    assert (place == np.arange(again.size)[:, None]).all()
    again.Free()
