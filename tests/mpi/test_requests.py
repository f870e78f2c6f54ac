# SPDX-License-Identifier: BSD-3-Clause
"""Requests: operations that nobody waits in, and those that start again and again."""

# ruff: noqa: SLF001 -- looks at the streams that are kept

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable

import numpy as np
import pytest
from mpi4py import MPI

import mpimcast
from mpimcast import Error, Intracomm, failure
from mpimcast.requests import Prequest, Request

Make = Callable[..., Intracomm]

LOSSY = "loss=0.1,dup=0.02,reorder=0.05"
COMPLETER = "mpimcast completer"


class Gathering:
    """Buffers of an Allgather, told apart from others by a salt."""

    def __init__(self, comm: MPI.Intracomm, count: int, salt: int = 0) -> None:
        self.comm = comm
        self.salt = salt
        self.block = np.empty(count, np.int32)
        self.place = np.empty((comm.Get_size(), count), np.int32)
        self.fill(salt)

    def fill(self, salt: int) -> None:
        """Make the block another, and forget what was gathered."""
        self.salt = salt
        self.block[:] = self._truth(self.comm.Get_rank())
        self.place.fill(-1)

    def start(self) -> MPI.Request:
        """Start to gather."""
        return self.comm.Iallgather(self.block, self.place)

    def check(self) -> None:
        """See that all is there, and that nobody could tell before."""
        for rank, row in enumerate(self.place):
            assert np.array_equal(row, self._truth(rank)), (rank, self.salt)

    def _truth(self, rank: int) -> np.ndarray:
        return np.arange(self.block.size, dtype=np.int32) + 1000 * rank + 7 * self.salt


@pytest.fixture
def opened(make: Make) -> Make:
    """Make communicators whose transport is open."""

    def make_opened(**settings: object) -> Intracomm:
        comm = make(**settings)
        comm.Allgather(np.zeros(1), np.zeros(comm.size))
        return comm

    return make_opened


def alone(comm: MPI.Intracomm) -> None:
    """Skip a test of requests of ours, which one rank alone has not."""
    if comm.Get_size() == 1:
        pytest.skip("needs a second rank")


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
    """By whatever call of MPI a request is completed, the data is there then."""
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
                # The transfer goes on while no other thread of Python's can.
                sum(range(20_000))
        each.check()
        request.Wait()
        assert request == MPI.REQUEST_NULL
        assert request.Test()


@pytest.mark.parametrize("way", ["Wait", "Waitall", "Test"])
def test_layouts(opened: Make, way: str) -> None:
    """Data with gaps is in its place before anybody is told, the gaps untouched."""
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
    """A rank's own block may lie in its place already."""
    comm = opened()
    each = Gathering(comm, 1000)
    each.place[comm.rank] = each.block
    comm.Iallgather(MPI.IN_PLACE, each.place).Wait()
    each.check()


def test_mistakes(opened: Make) -> None:
    """A wrong buffer raises at the start, as mpi4py does, and disturbs nobody."""
    comm = opened()
    with pytest.raises(KeyError, match="nonsense"):
        comm.Iallgather([np.zeros(3), "nonsense"], np.zeros(3 * comm.size))
    each = Gathering(comm, 10)
    each.start().Wait()
    each.check()


def test_first_use(make: Make, library: MPI.Intracomm) -> None:
    """Before a blocking collective the MPI library does it: a start never opens.

    It needs no other rank either.
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
    """Many operations are started before any other rank has entered the first."""
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
    """Small blocks take the MPI library's requests, on all ranks."""
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


def prepared(gathering: Gathering) -> MPI.Prequest:
    """Start a persistent request."""
    request = gathering.comm.Allgather_init(gathering.block, gathering.place)
    request.Start()
    return request


def test_thread_level(
    make: Make, library: MPI.Intracomm, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where one rank's MPI library cannot take threads, all requests are MPI's."""
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
    """Several communicators, started in different orders, completed in any.

    With other messages and the MPI library's own collectives beside them.
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
        # Blocking ones queue behind those of the same communicator.
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
    """Complete requests by a call now of this kind and now of that."""
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
    """Who waits for a request of ours keeps the MPI library's messages going."""
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
    """Who waits for a late rank uses little of its core."""
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


@pytest.mark.parametrize("fault", ["", LOSSY])
def test_persistent(opened: Make, fault: str, seed: int) -> None:
    """Started in opposite orders on odd and even ranks, again and again."""
    comm = opened(**({"fault": f"{fault},seed={seed}"} if fault else {}))
    gatherings = [Gathering(comm, count) for count in (1, 700, 5000)]
    requests = [comm.Allgather_init(each.block, each.place) for each in gatherings]
    order = [0, 1, 2] if comm.rank % 2 else [2, 1, 0]
    for turn in range(6):
        for which, each in enumerate(gatherings):
            each.fill(10 * turn + which)
        for which in order:
            requests[which].Start()
            assert requests[which] != MPI.REQUEST_NULL
        if turn % 3 == 0:
            MPI.Request.Waitall(requests)
        else:
            for which in order if turn % 3 == 1 else order[::-1]:
                requests[which].Wait()
                gatherings[which].check()
        for each in gatherings:
            each.check()
    for which in order:
        requests[which].Wait()
        requests[which].Free()
        with pytest.raises(MPI.Exception):
            requests[which].Start()


def test_startall(opened: Make) -> None:
    """A mixture of persistent requests, the MPI library's and ours."""
    comm = opened()
    rank, size = comm.rank, comm.size
    each = Gathering(comm, 2000)
    sent, got = np.zeros(10), np.zeros(10)
    requests = [
        comm.Recv_init(got, (rank - 1) % size),
        comm.Allgather_init(each.block, each.place),
        comm.Send_init(sent, (rank + 1) % size),
    ]
    for turn in range(4):
        each.fill(turn)
        sent.fill(turn)
        mpimcast.Startall(requests)
        MPI.Request.Waitall(requests)
        each.check()
        assert (got == turn).all()
    for request in requests:
        request.Free()


def test_streams_are_kept(opened: Make) -> None:
    """A request takes over what one has left that all ranks have freed."""
    comm = opened()
    alone(comm)
    binding = comm._binding
    assert binding is not None
    traffic = binding._traffic
    assert traffic is not None
    each = Gathering(comm, 500)
    kept = comm.Allgather_init(each.block, each.place)
    for turn in range(20):
        request = comm.Allgather_init(each.block, each.place)
        each.fill(turn)
        request.Start()
        request.Wait()
        each.check()
        if turn % 2 or comm.rank:
            request.Free()
        else:
            del request
    assert len(traffic._lanes) == 3
    kept.Free()
    # Where one rank has not freed one yet, nobody takes it over.
    other = comm.Allgather_init(each.block, each.place)
    if comm.rank == 0:
        other.Free()
    third = comm.Allgather_init(each.block, each.place)
    each.fill(7)
    third.Start()
    third.Wait()
    each.check()
    third.Free()
    if comm.rank:
        other.Free()


def test_nothing_allocated_twice(opened: Make) -> None:
    """The second start of a shape takes no memory, and sets nothing up."""
    comm = opened()
    alone(comm)
    each = Gathering(comm, 5000)
    persistent = comm.Allgather_init(each.block, each.place)
    for start in (each.start, lambda: persistent.Start() or persistent):
        start().Wait()
        before = comm.stats()
        for salt in range(5):
            each.fill(salt)
            start().Wait()
            each.check()
        after = comm.stats()
        assert after["epochs"] == before["epochs"] + 5
        assert after["allocations"] == before["allocations"]
        assert after["open_ns"] == before["open_ns"]
    persistent.Free()


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


# ---- failures ------------------------------------------------------------------


def differ(comm: Intracomm, start: Callable[[Gathering], MPI.Request]) -> MPI.Request:
    """Start an operation of which each rank has another size."""
    alone(comm)
    return start(Gathering(comm, 1000 + (comm.rank == 0)))


def wait_by(request: MPI.Request, way: str) -> None:
    """Complete a request by a call of its own, or of MPI for several."""
    if way == "Wait":
        request.Wait()
    elif way == "Test":
        while not request.Test():
            pass
    else:
        getattr(MPI.Request, way)([request])


@pytest.mark.parametrize("start", [Gathering.start, prepared])
@pytest.mark.parametrize("way", ["Wait", "Test", "Waitall", "Waitany", "Waitsome"])
def test_failure(
    opened: Make, way: str, start: Callable[[Gathering], MPI.Request]
) -> None:
    """Our own calls raise our error, the MPI library's a code that says it too."""
    comm = opened()
    request = differ(comm, start)
    text = "blocks are of 4000 to 4004 bytes"
    if way in ("Wait", "Test"):
        with pytest.raises(Error, match=text):
            wait_by(request, way)
    else:
        with pytest.raises(MPI.Exception) as caught:
            wait_by(request, way)
        code = caught.value.Get_error_code()
        if way == "Waitany":
            assert caught.value.Get_error_class() == failure.error_class()
            assert text in MPI.Get_error_string(code)
        else:
            assert code == MPI.ERR_IN_STATUS
    assert request == MPI.REQUEST_NULL
    request.Wait()
    if start is Gathering.start:
        with pytest.raises(Error, match=r"unusable .* since its operation"):
            Gathering(comm, 10).start()
    else:
        with pytest.raises(Error, match=r"unusable .* since its operation"):
            request.Start()


def test_several_failures(opened: Make) -> None:
    """Statuses tell, of several requests, which have failed."""
    comms = [opened(), opened()]
    bad = differ(comms[0], Gathering.start)
    each = Gathering(comms[1], 1000)
    good = each.start()
    statuses = [MPI.Status(), MPI.Status()]
    with pytest.raises(MPI.Exception) as caught:
        MPI.Request.Waitall([good, bad], statuses)
    assert caught.value.Get_error_code() == MPI.ERR_IN_STATUS
    assert statuses[0].error in (MPI.SUCCESS, MPI.ERR_PENDING)
    good.Wait()
    each.check()
    text = MPI.Get_error_string(statuses[1].error)
    # MPICH wraps the code that it is told in one of its own.
    assert "disagree" in text or "request query function" in text


@pytest.mark.parametrize("way", ["blocking", "Wait", "Waitall", "later"])
def test_errhandler(opened: Make, way: str) -> None:
    """A communicator's error handler is called, once for each failure."""
    comm = opened()
    alone(comm)
    told = []

    def tell(handle: MPI.Comm, code: int) -> None:
        told.append((handle == comm, MPI.Get_error_string(code)))

    handler = MPI.Comm.Create_errhandler(tell)
    comm.Set_errhandler(handler)
    each = Gathering(comm, 1000 + (comm.rank == 0))
    if way == "blocking":
        with pytest.raises(Error, match="disagree"):
            comm.Allgather(each.block, each.place)
    else:
        request = each.start()
        with pytest.raises(MPI.Exception if way == "Waitall" else Error):
            wait_by(request, "Waitall" if way == "Waitall" else "Wait")
    assert [ours for ours, _ in told] == [True]
    assert "disagree" in told.pop()[1]
    if way == "later":
        with pytest.raises(Error, match="unusable"):
            each.start()
        assert "unusable" in told.pop()[1]
    comm.Set_errhandler(MPI.ERRORS_RETURN)
    handler.Free()


def test_no_progress(make: Make) -> None:
    """A network that passes nothing is an error after TIMEOUT, for requests too."""
    comm = make(timeout=0.5, eager_bytes=0)
    alone(comm)
    comm.Allgather(np.zeros(1), np.zeros(comm.size))
    # Of another set of settings, so that only this one's datagrams are lost.
    lost = make(timeout=0.5, fault="loss=1,kind=multicast+repair", eager_bytes=0)
    lost.Allgather(np.zeros(0), np.zeros(0))
    with pytest.raises(mpimcast.TimedOut, match="TIMEOUT"):
        Gathering(lost, 3000).start().Wait()
    each = Gathering(comm, 3000)
    each.start().Wait()
    each.check()


# ---- the end -------------------------------------------------------------------


@pytest.mark.parametrize("way", ["Wait", "Waitall"])
def test_free_with_operations_in_flight(opened: Make, way: str) -> None:
    """They complete; what they hold on to goes with the last."""
    comm = opened()
    gatherings = [Gathering(comm, 4000, salt) for salt in range(6)]
    requests = [each.start() for each in gatherings]
    comm.Free()
    if way == "Wait":
        for request in requests:
            request.Wait()
    else:
        MPI.Request.Waitall(requests)
    for each in gatherings:
        each.check()


def test_persistent_outlives_its_communicator(opened: Make) -> None:
    """A request may be started after the communicator was freed."""
    comm = opened()
    alone(comm)
    odd = comm.rank % 2 == 1
    gatherings = [Gathering(MPI.COMM_WORLD, 2000, salt) for salt in range(2)]
    requests = [comm.Allgather_init(each.block, each.place) for each in gatherings]
    requests[0].Start()
    if odd:
        requests[0].Wait()
        requests[0].Free()
    comm.Free()
    if not odd:
        requests[0].Wait()
        requests[0].Free()
    gatherings[0].check()
    for turn in range(3):
        gatherings[1].fill(turn)
        requests[1].Start()
        requests[1].Wait()
        gatherings[1].check()
    requests[1].Free()


def count_completers() -> int:
    """Count the threads that complete requests."""
    return [thread.name for thread in threading.enumerate()].count(COMPLETER)


def test_one_completer(make: Make, library: MPI.Intracomm) -> None:
    """One thread serves all communicators, from first use to the last one's end."""
    alone(library)
    # Of communicators that outlive theirs, as in the test before.
    before = count_completers()
    comms = [make() for _ in range(3)]
    for comm in comms:
        comm.Allgather(np.zeros(1), np.zeros(comm.size))
    assert count_completers() == before
    for comm in comms:
        Gathering(comm, 10).start().Wait()
        assert count_completers() == 1
    for comm in comms:
        assert count_completers() == 1
        comm.Free()
    assert count_completers() == before
