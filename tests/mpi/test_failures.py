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


def gather(comm: Intracomm, nbytes: int = 3000) -> None:
    """Gather `nbytes` of each rank."""
    comm.Allgather(np.zeros(nbytes, np.uint8), np.zeros(comm.size * nbytes, np.uint8))


def alone(comm: Intracomm) -> None:
    """Skip a test that needs other ranks if there are none."""
    if comm.size == 1:
        pytest.skip("needs a second rank")


@pytest.mark.parametrize("nbytes", [10, 3000])
def test_different_sizes(make: Make, nbytes: int) -> None:
    """Blocks of different sizes are an error that says which sizes."""
    comm = make()
    alone(comm)
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
    """A block of another size than recvbuf expects is an error of this rank alone."""
    alone(comm)
    with pytest.raises(Error, match="sends 2 bytes, but recvbuf has 3 bytes"):
        comm.Allgather(bytes(2), bytearray(3 * comm.size))
    gather(comm)


def test_a_rank_that_does_not_come(make: Make, library: MPI.Intracomm) -> None:
    """ENTRY_TIMEOUT ends the wait for a live rank, and all ranks name it."""
    for late in range(library.size):
        comm = make(entry_timeout=0.5)
        alone(comm)
        gather(comm)
        if comm.rank == late:
            library.Barrier()
        with pytest.raises(TimedOut, match=rf"rank {late} .*ENTRY_TIMEOUT") as caught:
            gather(comm)
        assert caught.value.ranks == (late,)
        if comm.rank != late:
            library.Barrier()


def test_a_rank_that_does_not_open(make: Make, library: MPI.Intracomm) -> None:
    """ENTRY_TIMEOUT also ends the wait in an opening."""
    comm = make(entry_timeout=0.3, timeout=0.5)
    alone(comm)
    if comm.rank == 0:
        library.Barrier()
    with pytest.raises(TimedOut):
        gather(comm)
    if comm.rank != 0:
        library.Barrier()


def test_lateness_is_no_error(make: Make, library: MPI.Intracomm) -> None:
    """Without ENTRY_TIMEOUT a live rank may enter later than TIMEOUT."""
    comm = make(timeout=0.2)
    alone(comm)
    gather(comm)
    if comm.rank == 0:
        threading.Event().wait(1)
    gather(comm)
    library.Barrier()


@pytest.mark.parametrize("entered", [False, True])
def test_interrupt(make: Make, library: MPI.Intracomm, entered: bool) -> None:
    """Ctrl-C raises KeyboardInterrupt on its rank, errors elsewhere, frees buffers."""
    # With all data lost, an operation that all have entered never completes.
    lost = "loss=1,kind=multicast+repair" if entered else ""
    comm = make(fault=lost, eager_bytes=0, timeout=30)
    alone(comm)
    block = np.zeros(3000, np.uint8)
    place = np.zeros(comm.size * 3000, np.uint8)
    # This opens the transport.
    comm.Allgather_init(block, place).Free()
    victim = 0
    if comm.rank == victim:
        timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            comm.Allgather(block, place)
        place.fill(7)
        library.Barrier()
        assert (place == 7).all()
    else:
        if not entered:
            library.Barrier()
        with pytest.raises(Error, match=f"rank {victim} was interrupted"):
            comm.Allgather(block, place)
        if entered:
            library.Barrier()
    with pytest.raises(Error):
        gather(comm)


def test_no_progress(make: Make) -> None:
    """A network that delivers no data is an error after TIMEOUT, not a hang."""
    comm = make(fault="loss=1,kind=multicast+repair", timeout=0.5)
    alone(comm)
    with pytest.raises(TimedOut, match="TIMEOUT") as caught:
        gather(comm)
    assert caught.value.missing_chunks > 0
    assert caught.value.epoch is not None


def test_freeing_after_failure(library: MPI.Intracomm) -> None:
    """After a failure Free needs no other rank."""
    comm = Intracomm(
        library.Dup(),
        transport="udp",
        min_bytes=0,
        timeout=0.5,
        fault="loss=1,kind=multicast+repair",
    )
    alone(comm)
    with pytest.raises(Error):
        gather(comm)
    if comm.rank == 0:
        comm.Free()
        library.Barrier()
    else:
        library.Barrier()
        comm.Free()


class Lines(logging.Handler):
    """The lines that a rank logs; one of them makes it tell another rank.

    Parameters
    ----------
    number
        Number of that line, from 1 on.
    tell
        Called when that line is logged.
    """

    def __init__(self, number: int, tell: Callable[[], None]) -> None:
        super().__init__()
        self.lines: list[str] = []
        self._number, self._tell = number, tell
        self.setFormatter(log.logger.handlers[0].formatter)

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a line."""
        self.lines.append(self.format(record))
        if len(self.lines) == self._number:
            self._tell()


@pytest.mark.parametrize("late", [0, -1])
@pytest.mark.parametrize("what", ["operation", "request", "preparing"])
def test_a_long_wait_is_logged(
    make: Make, library: MPI.Intracomm, late: int, what: str
) -> None:
    """Lines, ever more rarely, name the rank that keeps all others waiting."""
    comm = make(warn_after=0.1)
    alone(comm)
    late %= comm.size
    handler = Lines(3, lambda: library.send(None, late))
    gather(comm)
    log.logger.addHandler(handler)
    if comm.rank == late:
        for _ in range(comm.size - 1):
            library.recv()
    block = np.zeros(3000, np.uint8)
    place = np.zeros(comm.size * 3000, np.uint8)
    if what == "operation":
        comm.Allgather(block, place)
    elif what == "request":
        comm.Iallgather(block, place).Wait()
    else:
        comm.Allgather_init(block, place).Free()
    library.Barrier()
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
    # A rank on its way to a roll call may first seem to be missing too.
    assert any(f"rank {late}" in line for line in handler.lines)
    found = [re.fullmatch(where + whom, line) for line in handler.lines]
    assert all(found), handler.lines
    waits_s = [float(each[1]) for each in found if each]
    assert all(after >= 0.09 * 2**k for k, after in enumerate(waits_s)), waits_s


def test_waits_leave_nothing_behind(library: MPI.Intracomm) -> None:
    """Messages that ranks send while they wait never reach a later communicator."""
    if library.size == 1:
        pytest.skip("needs a second rank")
    for turn in range(12):
        comm = Intracomm(
            library.Dup(), transport="udp", min_bytes=0, warn_after=0.02, timeout=20
        )
        gather(comm)
        late = turn % comm.size
        handler = Lines(1, lambda late=late: library.send(None, late))
        log.logger.addHandler(handler)
        if comm.rank == late:
            for _ in range(comm.size - 1):
                library.recv()
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
def test_ranks_of_different_kinds(
    make: Make,
    monkeypatch: pytest.MonkeyPatch,
    change: tuple[ModuleType, str, object],
    text: str,
) -> None:
    """When opening, all ranks learn which rank has another version or byte order."""
    comm = make()
    alone(comm)
    odd = comm.size - 1
    if comm.rank == odd:
        monkeypatch.setattr(*change)
    with pytest.raises(Error, match=text) as caught:
        gather(comm)
    assert f"rank {odd}" in str(caught.value)
    with pytest.raises(Error, match=text):
        gather(comm)


@pytest.mark.parametrize("why", ["differ", "no progress"])
def test_another_communicator_after_a_failure(library: MPI.Intracomm, why: str) -> None:
    """After a failure the communicator can be freed, and a new one works."""
    lossy = {"fault": "loss=1,kind=multicast+repair", "timeout": 0.5}
    settings = {"transport": "udp", "min_bytes": 0}
    comm = Intracomm(
        library.Dup(), **settings, **(lossy if why == "no progress" else {})
    )
    alone(comm)
    for start in (gather, lambda comm, n: comm.Ibcast(np.zeros(n)).Wait()):
        with pytest.raises(Error):
            start(comm, 3000 + (why == "differ" and comm.rank == 0))
    again = Intracomm(library.Dup(), **settings)
    gather(again)
    comm.Free()
    place = np.zeros((again.size, 3000), int)
    again.Iallgather(np.full(3000, again.rank), place).Wait()
    assert (place == np.arange(again.size)[:, None]).all()
    again.Free()
