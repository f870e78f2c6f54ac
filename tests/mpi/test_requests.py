# SPDX-License-Identifier: BSD-3-Clause
"""Requests: operations that return before they complete."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable

import numpy as np
import pytest
from gathering import LOSSY, Gathering, Make, alone, prepared
from mpi4py import MPI

from mpimcast.requests import Prequest, Request

WAYS: dict[str, Callable[[MPI.Request], object]] = {
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


@pytest.mark.parametrize("way", [*WAYS, *POLLS])
def test_completion(opened: Make, way: str) -> None:
    """Whichever MPI call completes a request, the data is there when it returns."""
    comm = opened()
    for salt, count in enumerate((0, 1, 300, 20_000)):
        each = Gathering(comm, count, salt)
        request = each.start()
        assert isinstance(request, Request if comm.size > 1 else MPI.Request)
        assert request != MPI.REQUEST_NULL
        if way in WAYS:
            WAYS[way](request)
        else:
            while not POLLS[way](request):
                # The transfer goes on even while no other Python thread can run.
                sum(range(20_000))
        each.check()
        request.Wait()
        assert request == MPI.REQUEST_NULL
        assert request.Test()


@pytest.mark.parametrize("way", ["Wait", "Waitall", "Test"])
def test_layouts(opened: Make, way: str) -> None:
    """On completion data with gaps is in its place, and the gaps are untouched."""
    comm = opened()
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


def test_in_place(opened: Make) -> None:
    """This rank's block may lie in its place before the call."""
    comm = opened()
    each = Gathering(comm, 1000)
    each.place[comm.rank] = each.block
    comm.Iallgather(MPI.IN_PLACE, each.place).Wait()
    each.check()


def test_mistakes(opened: Make) -> None:
    """A bad buffer raises at the start, as in mpi4py, and disturbs no other call."""
    comm = opened()
    with pytest.raises(KeyError, match="nonsense"):
        comm.Iallgather([np.zeros(3), "nonsense"], np.zeros(3 * comm.size))
    each = Gathering(comm, 10)
    each.start().Wait()
    each.check()


def test_first_use(make: Make, library: MPI.Intracomm) -> None:
    """Before the first blocking collective a start goes to the MPI library.

    A start never opens a transport, and needs no other rank.
    """
    comm = make()
    each = Gathering(comm, 3000)
    if comm.rank == 0:
        request = each.start()
        library.Barrier()
    else:
        library.Barrier()
        request = each.start()
    assert type(request) is MPI.Request
    request.Wait()
    each.check()
    assert comm.stats()["epochs"] == 0


@pytest.mark.parametrize("count", [10, 30_000])
def test_starting_needs_nobody(
    opened: Make, library: MPI.Intracomm, count: int
) -> None:
    """Many operations can be started before any other rank has entered the first."""
    comm = opened()
    gatherings = [Gathering(comm, count, salt) for salt in range(12)]
    if comm.rank == 0:
        requests = [each.start() for each in gatherings]
        library.Barrier()
    else:
        library.Barrier()
        requests = [each.start() for each in gatherings]
    for each, request in zip(reversed(gatherings), reversed(requests), strict=True):
        request.Wait()
        each.check()


def test_below_min_bytes(opened: Make) -> None:
    """Blocks below MIN_BYTES become the MPI library's requests, on all ranks."""
    comm = opened(min_bytes=1000)
    small, large = Gathering(comm, 249), Gathering(comm, 250)
    large.comm.Allgather(large.block, large.place)
    for make_request in (Gathering.start, prepared):
        requests = [make_request(small), make_request(large)]
        assert isinstance(requests[1], Request | Prequest) == (comm.size > 1)
        assert not isinstance(requests[0], Request | Prequest)
        MPI.Request.Waitall(requests)
        small.check()
        large.check()


def test_thread_level(
    make: Make, library: MPI.Intracomm, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If one rank's MPI library does not take threads, all requests are MPI's."""
    if library.rank == library.size - 1:
        monkeypatch.setattr(MPI, "Query_thread", lambda: MPI.THREAD_SERIALIZED)
    comm = make()
    each = Gathering(comm, 3000)
    comm.Allgather(each.block, each.place)
    each.check()
    derived = comm.Dup()
    for comm_ in (comm, derived):
        each = Gathering(comm_, 3000)
        comm_.Allgather(each.block, each.place)
        request = each.start()
        assert type(request) is MPI.Request
        request.Wait()
        each.check()
        request = prepared(each)
        assert type(request) is MPI.Prequest
        request.Wait()
        request.Free()
    derived.Free()


# ---- many in flight ------------------------------------------------------------


@pytest.mark.parametrize("fault", ["", LOSSY])
def test_many(opened: Make, fault: str, seed: int) -> None:
    """Communicators' requests may be started in different orders, completed in any.

    Other messages and the MPI library's own collectives are in flight beside them.
    """
    settings = {"fault": f"{fault},seed={seed}"} if fault else {}
    comms = [opened(**settings) for _ in range(3)]
    rank, size = comms[0].rank, comms[0].size
    random = np.random.default_rng((seed, rank))
    alike = np.random.default_rng(seed)
    for turn in range(4):
        counts = alike.integers(0, 4000, (3, 5))
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
        # A blocking operation queues behind requests of its communicator.
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
    """Complete requests by calls of random kinds."""
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


def test_rule_of_progress(opened: Make) -> None:
    """Waiting for a request of this library progresses the MPI library's messages."""
    comm = opened()
    alone(comm)
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


def test_waiting_sleeps(opened: Make, library: MPI.Intracomm) -> None:
    """A rank that waits for a late rank uses less than half of its core."""
    comm = opened()
    alone(comm)
    each = Gathering(comm, 3000)
    library.Barrier()
    if comm.rank == 0:
        threading.Event().wait(0.5)
        each.start().Wait()
    else:
        wall_s, busy_s = time.monotonic(), time.process_time()
        each.start().Wait()
        busy_s = time.process_time() - busy_s
        assert busy_s < 0.5 * (time.monotonic() - wall_s)
    each.check()


# ---- persistent requests -------------------------------------------------------


# ---- what must not be done -----------------------------------------------------


def test_cancel_and_free(opened: Make, library: MPI.Intracomm) -> None:
    """An active collective can neither be cancelled nor freed."""
    comm = opened()
    alone(comm)
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
    library.Barrier()
    MPI.Request.Waitall(requests)
    each.check()
    again.check()
    persistent.Free()
