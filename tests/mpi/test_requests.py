# SPDX-License-Identifier: BSD-3-Clause
"""Requests: starting operations, and completing them in every way that MPI has."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable

import numpy as np
import pytest
from gathering import (
    LOSSY,
    Gathering,
    Make,
    require_two_ranks,
    start_persistent,
    started,
)
from mpi4py import MPI

from mpimcast._mpi.buffers import Message
from mpimcast.requests import HostedPrequest, HostedRequest, Prequest, Request

# Calls that return when the request is complete, and calls that return whether it is.
WAITS: dict[str, Callable[[MPI.Request], object]] = {
    "Wait": lambda request: request.Wait(),
    "wait": lambda request: request.wait(),
    "Waitall": lambda request: MPI.Request.Waitall([request]),
    "Waitany": lambda request: MPI.Request.Waitany([request]),
    "Waitsome": lambda request: MPI.Request.Waitsome([request]),
    "waitall": lambda request: MPI.Request.waitall([request]),
}
POLLS: dict[str, Callable[[MPI.Request], bool]] = {
    "Test": lambda request: request.Test(),
    "test": lambda request: request.test()[0],
    "Testall": lambda request: MPI.Request.Testall([request]),
    "Testany": lambda request: MPI.Request.Testany([request])[1],
    "Testsome": lambda request: bool(MPI.Request.Testsome([request])),
    "Get_status": lambda request: request.Get_status(),
}


@pytest.mark.parametrize("way", [*WAITS, *POLLS])
def test_completion(make_opened: Make, way: str) -> None:
    """When any MPI call says that a request is complete, the data is in its place."""
    comm = make_opened()
    for salt, count in enumerate((0, 1, 300, 20_000)):
        each = Gathering(comm, count, salt)
        request = each.start()
        assert isinstance(request, Request if comm.size > 1 else MPI.Request)
        assert request != MPI.REQUEST_NULL
        if way in WAITS:
            WAITS[way](request)
        else:
            while not POLLS[way](request):
                # Holds the interpreter lock, while the transfer must go on.
                sum(range(20_000))
        each.check()
        request.Wait()
        assert request == MPI.REQUEST_NULL
        assert request.Test()


@pytest.mark.parametrize("way", ["Wait", "Waitall", "Test"])
def test_data_with_gaps(make_opened: Make, way: str) -> None:
    """On completion data with gaps is in its place, and the gaps are untouched.

    The request keeps sendbuf alive.
    """
    comm = make_opened()
    count, stride = 700, 3
    datatype = MPI.INT32_T.Create_vector(count, 1, stride).Commit()
    rows = datatype.Create_resized(0, 4 * stride * count).Commit()
    own = np.arange(count, dtype=np.int32) + 1000 * comm.rank
    place = np.full((comm.size, count, stride), -1, np.int32)
    request = comm.Iallgather(own, [place, 1, rows])
    del own
    gc.collect()
    if way == "Wait":
        request.Wait()
    elif way == "Waitall":
        MPI.Request.Waitall([request])
    else:
        while not request.Test():
            pass
    for rank in range(comm.size):
        assert np.array_equal(place[rank, :, 0], np.arange(count) + 1000 * rank)
    assert (place[:, :, 1:] == -1).all()
    rows.Free()
    datatype.Free()


def test_datatypes_are_freed_before_the_request(
    make_opened: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A complete request holds none: MPICH 4.0 aborts if it frees one with itself."""
    freed = []
    free = Message.__del__

    def watched(message: Message) -> None:
        freed.append(message.address)
        free(message)

    monkeypatch.setattr(Message, "__del__", watched)
    comm = make_opened()
    require_two_ranks(comm)
    gaps = MPI.INT32_T.Create_vector(10, 1, 3).Commit()
    data = np.zeros(30, np.int32)
    request = comm.Ibcast([data, 1, gaps])
    while not request.Get_status():
        sum(range(20_000))  # holds the interpreter lock for no longer than this
    assert freed.count(data.ctypes.data) == 1
    request.Wait()
    assert freed.count(data.ctypes.data) == 1
    gaps.Free()


def test_in_place(make_opened: Make) -> None:
    """This rank's block may already be in recvbuf."""
    comm = make_opened()
    each = Gathering(comm, 1000)
    each.place[comm.rank] = each.block
    comm.Iallgather(MPI.IN_PLACE, each.place).Wait()
    each.check()


def test_mistakes(make_opened: Make) -> None:
    """Iallgather itself raises if a buffer is bad, and later calls succeed."""
    comm = make_opened()
    with pytest.raises(KeyError, match="nonsense"):
        comm.Iallgather([np.zeros(3), "nonsense"], np.zeros(3 * comm.size))
    each = Gathering(comm, 10)
    each.start().Wait()
    each.check()


def test_requests_before_the_opening(make_comm: Make, mpi_comm: MPI.Intracomm) -> None:
    """Before the first blocking collective requests are the MPI library's.

    That is because a start must not wait for other ranks, as opening a transport would.
    """
    comm = make_comm()
    each = Gathering(comm, 3000)
    # No other rank starts before rank 0 has.
    if comm.rank == 0:
        request = each.start()
        mpi_comm.Barrier()
    else:
        mpi_comm.Barrier()
        request = each.start()
    assert isinstance(request, HostedRequest)
    request.Wait()
    each.check()
    assert started(comm) == 0


@pytest.mark.parametrize("count", [10, 30_000])
def test_starting_waits_for_no_rank(
    make_opened: Make, mpi_comm: MPI.Intracomm, count: int
) -> None:
    """Rank 0 can start 12 operations before any other rank has started the first."""
    comm = make_opened()
    gatherings = [Gathering(comm, count, salt) for salt in range(12)]
    if comm.rank == 0:
        requests = [each.start() for each in gatherings]
        mpi_comm.Barrier()
    else:
        mpi_comm.Barrier()
        requests = [each.start() for each in gatherings]
    for each, request in zip(reversed(gatherings), reversed(requests), strict=True):
        request.Wait()
        each.check()


def test_below_min_bytes(make_opened: Make) -> None:
    """Requests for blocks below MIN_BYTES are the MPI library's, on all ranks."""
    comm = make_opened(min_bytes=1000)
    # Of 249 and 250 numbers of 4 bytes.
    small, large = Gathering(comm, 249), Gathering(comm, 250)
    large.comm.Allgather(large.block, large.place)
    for make_request in (Gathering.start, start_persistent):
        requests = [make_request(small), make_request(large)]
        assert isinstance(requests[1], Request | Prequest) == (comm.size > 1)
        assert not isinstance(requests[0], Request | Prequest)
        MPI.Request.Waitall(requests)
        small.check()
        large.check()


def test_thread_level(
    make_comm: Make, mpi_comm: MPI.Intracomm, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without MPI_THREAD_MULTIPLE on one rank, all requests are the MPI library's."""
    if mpi_comm.rank == mpi_comm.size - 1:
        monkeypatch.setattr(MPI, "Query_thread", lambda: MPI.THREAD_SERIALIZED)
    comm = make_comm()
    each = Gathering(comm, 3000)
    comm.Allgather(each.block, each.place)
    each.check()
    derived = comm.Dup()
    for comm_ in (comm, derived):
        each = Gathering(comm_, 3000)
        comm_.Allgather(each.block, each.place)
        request = each.start()
        assert isinstance(request, HostedRequest)
        request.Wait()
        each.check()
        request = start_persistent(each)
        assert isinstance(request, HostedPrequest)
        request.Wait()
        request.Free()
    derived.Free()


# ---- many in flight ------------------------------------------------------------


@pytest.mark.parametrize("fault", ["", LOSSY])
def test_many(make_opened: Make, fault: str, seed: int) -> None:
    """Requests of three communicators complete in any order.

    Each rank starts them in another order, except that each communicator's own requests
    keep theirs. Messages and collectives of the MPI library are in flight beside them.
    """
    settings = {"fault": f"{fault},seed={seed}"} if fault else {}
    comms = [make_opened(**settings) for _ in range(3)]
    rank, size = comms[0].rank, comms[0].size
    random = np.random.default_rng((seed, rank))
    common_random = np.random.default_rng(seed)
    for turn in range(4):
        counts = common_random.integers(0, 4000, (3, 5))
        order = [(which, n) for which in random.permutation(3) for n in range(5)]
        gatherings = []
        requests: list[MPI.Request] = []
        for which, n in order:
            each = Gathering(comms[which], int(counts[which, n]), 100 * turn + n)
            gatherings.append(each)
            requests.append(each.start())
        token = np.empty(50_000, np.int32)
        requests.append(comms[0].Irecv(token, (rank - 1) % size, turn))
        sent = np.full(50_000, turn, np.int32)
        requests.append(comms[0].Isend(sent, (rank + 1) % size, turn))
        ones, total = np.ones(1), np.empty(1)
        requests.append(comms[1].Iallreduce(ones, total))
        # A blocking operation waits for earlier requests of its communicator.
        last = Gathering(comms[2], 100, turn)
        comms[2].Allgather(last.block, last.place)
        last.check()
        complete(requests, gatherings, random)
        assert (token == turn).all()
        assert total == size


def complete(
    requests: list[MPI.Request],
    gatherings: list[Gathering],
    random: np.random.Generator,
) -> None:
    """Complete all requests, by randomly chosen calls, and check each as it completes.

    The first of the requests belong to the gatherings, in the same order.
    """
    left = list(range(len(requests)))
    while left:
        random.shuffle(left)
        some = [requests[index] for index in left]
        kind = random.integers(4)
        if kind == 0:
            some[0].Wait()
            done = [0]
        elif kind == 1:
            done = [MPI.Request.Waitany(some)]
        elif kind == 2:
            done = MPI.Request.Testsome(some) or []
        else:
            MPI.Request.Waitall(some[:3])
            done = list(range(len(some[:3])))
        for index in sorted(done, reverse=True):
            which = left.pop(index)
            assert requests[which] == MPI.REQUEST_NULL
            if which < len(gatherings):
                gatherings[which].check()


def test_waiting_progresses_messages(make_opened: Make) -> None:
    """Messages of the MPI library go on while a rank waits for mpimcast's request.

    Even ranks send a large message, which needs their progress, and wait in the
    collective first; odd ranks start the collective only when they have the message.
    """
    comm = make_opened()
    require_two_ranks(comm)
    rank, size = comm.rank, comm.size
    each = Gathering(comm, 3000)
    sent, got = np.full(1 << 20, rank), np.empty(1 << 20, int)
    if rank % 2 == 0:
        message = comm.Isend(sent, (rank + 1) % size)
        each.start().Wait()
        message.Wait()
    if rank % 2 == 1 or (rank == 0 and size % 2 == 1):
        comm.Recv(got, (rank - 1) % size)
        assert (got == (rank - 1) % size).all()
    if rank % 2 == 1:
        each.start().Wait()
    each.check()


def test_waiting_sleeps(make_opened: Make, mpi_comm: MPI.Intracomm) -> None:
    """A rank that waits 0.5 s for a late rank uses less than half of a processor."""
    comm = make_opened()
    require_two_ranks(comm)
    each = Gathering(comm, 3000)
    mpi_comm.Barrier()
    if comm.rank == 0:
        threading.Event().wait(0.5)
        each.start().Wait()
    else:
        begin_s, begin_busy_s = time.monotonic(), time.process_time()
        each.start().Wait()
        busy_s = time.process_time() - begin_busy_s
        assert busy_s < 0.5 * (time.monotonic() - begin_s)
    each.check()


# ---- what must not be done -----------------------------------------------------


def test_cancel_and_free(make_opened: Make, mpi_comm: MPI.Intracomm) -> None:
    """An active collective can neither be cancelled nor freed."""
    comm = make_opened()
    require_two_ranks(comm)
    each, again = Gathering(comm, 100), Gathering(comm, 100, 1)
    persistent = comm.Allgather_init(again.block, again.place)
    requests = [each.start(), persistent]
    persistent.Start()
    for request in requests:
        for forbidden in (request.Cancel, request.cancel, request.Free):
            with pytest.raises(MPI.Exception) as caught:
                forbidden()
            assert caught.value.Get_error_class() == MPI.ERR_REQUEST
        with pytest.raises(MPI.Exception):
            MPI.Request.Cancel(request)
    with pytest.raises(MPI.Exception):
        persistent.Start()
    mpi_comm.Barrier()
    MPI.Request.Waitall(requests)
    each.check()
    again.check()
    persistent.Free()
