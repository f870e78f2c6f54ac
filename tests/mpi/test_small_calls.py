# SPDX-License-Identifier: BSD-3-Clause
"""Calls that stay the MPI library's send no messages of ours, and keep nothing."""

# ruff: noqa: SLF001 -- counts messages, and reads sizes as mpimcast does

from __future__ import annotations

import gc
import sys
from array import array
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from gathering import started
from mpi4py import MPI

from mpimcast import Intracomm
from mpimcast._mpi import sizes
from mpimcast._session import collectives

Make = Callable[..., Intracomm]
Call = Callable[[MPI.Intracomm, "Buffers"], Any]


class Buffers:
    """What calls of few bytes send and receive."""

    def __init__(self, comm: MPI.Intracomm) -> None:
        self.send = np.full(2, comm.rank, float)
        self.recv = np.zeros(2 * comm.size)
        self.data = np.zeros(2)
        self.bytes = bytearray(16)
        self.array = array("d", [0, 0])
        self.counts = [2] * comm.size
        self.begins = [2 * rank for rank in range(comm.size)]


def finish(request: MPI.Request) -> None:
    """Complete a request that was just started."""
    request.Wait()


def drop(request: MPI.Prequest) -> None:
    """Free a persistent request that was never started."""
    request.Free()


CALLS: dict[str, Call] = {
    "Bcast": lambda comm, my: comm.Bcast(my.data),
    "Bcast with a type": lambda comm, my: comm.Bcast([my.data, MPI.DOUBLE]),
    "Bcast with a count": lambda comm, my: comm.Bcast([my.data, 2, MPI.DOUBLE], 0),
    "Bcast of a bytearray": lambda comm, my: comm.Bcast(my.bytes),
    "Bcast of an array": lambda comm, my: comm.Bcast(my.array),
    "Allgather": lambda comm, my: comm.Allgather(my.send, my.recv),
    "Allgather in place": lambda comm, my: comm.Allgather(MPI.IN_PLACE, my.recv),
    "Allgather with counts": lambda comm, my: comm.Allgather(
        [my.send, 2, MPI.DOUBLE], [my.recv, 2, MPI.DOUBLE]
    ),
    "Allgatherv": lambda comm, my: comm.Allgatherv(my.send, my.recv),
    "Allgatherv with counts": lambda comm, my: comm.Allgatherv(
        my.send, [my.recv, my.counts]
    ),
    "Allgatherv with displacements": lambda comm, my: comm.Allgatherv(
        my.send, [my.recv, (my.counts, my.begins), MPI.DOUBLE]
    ),
    "Allgatherv with four items": lambda comm, my: comm.Allgatherv(
        my.send, (my.recv, my.counts, my.begins, MPI.DOUBLE)
    ),
    "Ibcast": lambda comm, my: finish(comm.Ibcast(my.data)),
    "Iallgather": lambda comm, my: finish(comm.Iallgather(my.send, my.recv)),
    "Iallgatherv": lambda comm, my: finish(
        comm.Iallgatherv(my.send, [my.recv, my.counts])
    ),
    "Bcast_init": lambda comm, my: drop(comm.Bcast_init(my.data)),
    "Allgather_init": lambda comm, my: drop(comm.Allgather_init(my.send, my.recv)),
    "Allgatherv_init": lambda comm, my: drop(
        comm.Allgatherv_init(my.send, [my.recv, my.counts])
    ),
    "bcast": lambda comm, _: comm.bcast({"step": 7}),
    "allgather": lambda comm, _: comm.allgather("word"),
    "bcast of a long text": lambda comm, _: comm.bcast(500 * "x"),
    "allgather of long texts": lambda comm, _: comm.allgather([500 * "x", [1]]),
}


def counted(comm: Intracomm) -> tuple[int, int]:
    """Return mpimcast's messages by MPI for a communicator, and its own operations.

    Datagrams do not count, since late answers to earlier operations are among them.
    """
    state = comm._comm_state
    assert state is not None
    sent = 0 if state._private is None else state._private.nmessages
    return sent, started(comm)


@pytest.mark.parametrize("opened", [False, True])
@pytest.mark.parametrize("name", CALLS)
def test_no_messages(
    make_comm: Make, make_opened: Make, name: str, *, opened: bool
) -> None:
    """A small call sends nothing by mpimcast, whether or not a transport is open.

    Before that the ranks have agreed on settings, by a first collective.
    """
    comm = make_opened(min_bytes=1000) if opened else make_comm(min_bytes=1000)
    comm.Bcast(np.zeros(1))
    if opened:
        comm.Allgather(np.zeros(1000), np.zeros(1000 * comm.size))
    before = counted(comm)
    my = Buffers(comm)
    for _ in range(3):
        CALLS[name](comm, my)
    assert counted(comm) == before


@pytest.mark.parametrize("name", CALLS)
def test_quick_check(make_opened: Make, name: str, monkeypatch: Any) -> None:
    """The quick check knows these calls as small, so that no buffer is parsed."""
    comm = make_opened(min_bytes=1000)
    comm.Bcast(np.zeros(1000))

    def refuse(*_: Any) -> None:
        raise AssertionError("the buffers were parsed")

    for kind in ("Bcast", "_Gathering", "Allgather", "Allgatherv"):
        monkeypatch.setattr(getattr(collectives, kind), "__init__", refuse)
    CALLS[name](comm, Buffers(comm))


class Lacking(MPI.Datatype):
    """A datatype of a language for which the MPI library was not built."""

    @property
    def is_predefined(self) -> bool:
        """Raise the error that the library would return."""
        raise MPI.Exception(MPI.ERR_TYPE)


def test_datatypes_that_the_library_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Open MPI 4 refuses those of Fortran; the others are known nevertheless."""
    lacking = Lacking(MPI.BYTE)
    monkeypatch.setattr(MPI, "LACKING", lacking, raising=False)
    known = sizes.learn.__wrapped__()
    assert any(each is MPI.DOUBLE for each in known)
    assert not any(each is lacking for each in known)


@pytest.mark.parametrize("transport", ["udp", "mpi"])
@pytest.mark.parametrize("name", CALLS)
def test_nothing_is_kept(make_comm: Make, name: str, transport: str) -> None:
    """A thousand small calls leave no more memory in use than they found.

    What others in the process do meanwhile may show in one round, but not in all.
    """
    comm = make_comm(min_bytes=1000, transport=transport)
    comm.Bcast(np.zeros(1000))
    my = Buffers(comm)
    call = CALLS[name]
    for _ in range(100):
        call(comm, my)
    kept = []
    gc.disable()
    try:
        for _ in range(5):
            before = sys.getallocatedblocks()
            for _ in range(1000):
                call(comm, my)
            kept.append(sys.getallocatedblocks() - before)
    finally:
        gc.enable()
    assert min(kept) <= 1, kept  # the number itself


def test_ranks_have_other_buffers(make_opened: Make) -> None:
    """The sizes of buffers do not decide, where counts say how much of them is used."""
    comm = make_opened(min_bytes=1000)
    before = started(comm)
    items = 200 if comm.rank == 0 else 10_000
    counts = [200] * comm.size
    data, place = np.zeros(items), np.zeros(items * comm.size)
    comm.Bcast([data, 200, MPI.DOUBLE])
    comm.Bcast([data, 200])
    comm.Allgather([data, 200, MPI.DOUBLE], [place, 200, MPI.DOUBLE])
    comm.Allgatherv([data, 200, MPI.DOUBLE], [place, counts])
    comm.Allgatherv([data, 200, MPI.DOUBLE], [place, counts, None, MPI.DOUBLE])
    comm.Allgatherv([data, 200, MPI.DOUBLE], [place, (counts, None), MPI.DOUBLE])
    assert started(comm) - before == (6 if comm.size > 1 else 0)


def test_overlapping_items(make_opened: Make) -> None:
    """A root may send the same item many times, from a buffer that has it once."""
    comm = make_opened(min_bytes=1000)
    before = started(comm)
    again = MPI.DOUBLE.Create_resized(0, 0).Commit()
    data = np.full(1 if comm.rank == 0 else 500, 7.0)
    if comm.rank > 0:
        data.fill(0)
    comm.Bcast([data, 500, again] if comm.rank == 0 else [data, 500, MPI.DOUBLE])
    again.Free()
    assert (data == 7).all()
    assert started(comm) - before == (1 if comm.size > 1 else 0)
