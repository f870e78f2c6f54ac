# SPDX-License-Identifier: BSD-3-Clause
"""PROGRESS=proxy: results equal the MPI library's, on all ranks or beside host ranks.

Programs need not know of proxies: the settings alone say which ranks have them.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import select
import signal
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from forms import FORMS, run_at_once
from gathering import gather_and_check, require_two_ranks
from mpi4py import MPI

import mpimcast
from mpimcast import ConfigError, Error, Intracomm
from mpimcast._native.proxy import find

pytestmark = pytest.mark.network

Make = Callable[..., Intracomm]

# Runs a collective, given by its name, with these arguments.
Call = Callable[..., None]

LIMIT_S = 20
CHUNK_BYTES = 512

# Blocks without data, of parts of chunks, of whole chunks, and of many.
SIZES = (0, 1, 511, 512, 513, 1024, 5000, 60_000)

# By name: which ranks have a proxy.
WHO: dict[str, Callable[[int], bool]] = {
    "all": lambda _rank: True,
    "odd": lambda rank: rank % 2 == 1,
}

FAULTS = (
    "",
    "loss=0.05",
    "loss=0.2",
    "dup=0.2",
    "reorder=0.2",
    "loss=0.2,dup=0.1,reorder=0.1",
)


class Proxies:
    """The proxies of a run, whose names no other run has.

    Attributes
    ----------
    name : str
        The name of the proxy that tests use unless they end it.
    """

    def __init__(self, comm: MPI.Intracomm) -> None:
        self._comm = comm
        self._stem = comm.bcast(f"test-{os.getpid()}-{time.time_ns():x}")
        self._numbers = itertools.count()
        self._names: list[str] = []
        self.name = self.new_name()

    def new_name(self) -> str:
        """Return another name, the same on all ranks."""
        self._names.append(f"{self._stem}-{next(self._numbers)}")
        return self._names[-1]

    def end(self) -> None:
        """End all proxies that run. All communicators were freed before."""
        self._comm.Barrier()
        for name in self._names if self._comm.rank == 0 else ():
            runner = find(name)
            if runner is not None:
                with Process(runner.pid) as process:
                    process.end()
        self._comm.Barrier()


class Process(contextlib.AbstractContextManager["Process"]):
    """A process that this one did not start; it is told apart from later ones."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._fd = os.pidfd_open(pid)

    def __exit__(self, *_: object) -> None:
        """Forget the process."""
        os.close(self._fd)

    def send(self, number: int) -> None:
        """Send it a signal."""
        signal.pidfd_send_signal(self._fd, number)

    def has_ended(self, limit_s: float) -> bool:
        """Return whether it ends within a time."""
        return bool(select.select([self._fd], [], [], limit_s)[0])

    def end(self) -> None:
        """Drain it; kill it, and fail, if it has not ended then."""
        self.send(signal.SIGTERM)
        if not self.has_ended(LIMIT_S):
            self.send(signal.SIGKILL)
            pytest.fail(f"process {self.pid} still has ranks")


@pytest.fixture(scope="module")
def proxies() -> Iterator[Proxies]:
    """Yield the proxies of this run, and end them."""
    made = Proxies(MPI.Intracomm(MPI.COMM_WORLD))
    yield made
    made.end()


@pytest.fixture(scope="module")
def adapter(request: pytest.FixtureRequest) -> str:
    """Return the name of adapters to be used instead of proxies; "" for none."""
    return str(request.config.getoption("--adapter"))


@pytest.fixture
def make(make_comm: Make, proxies: Proxies, adapter: str) -> Make:
    """Return a function that makes communicators some of whose ranks have proxies.

    With --adapter, these have adapters instead.
    """
    rank = MPI.COMM_WORLD.rank

    def make_one(who: str, **settings: object) -> Intracomm:
        has_one = WHO[who](rank)
        # Beside adapters, some of the other ranks have a proxy.
        has_any = has_one or (adapter != "" and rank % 4 == 2)
        chosen = {
            "progress": "proxy" if has_any else "auto",
            "proxy": adapter if has_one and adapter else proxies.name,
            "node_bytes": 0,
            "choice": "always",
            "chunk_bytes": CHUNK_BYTES,
        }
        return make_comm(**{**chosen, **settings})

    return make_one


# ---- results -----------------------------------------------------------------


def random_bytes(nbytes: int, *seeds: int) -> np.ndarray:
    """Return bytes that depend on the seeds alone."""
    return np.random.default_rng(seeds).integers(0, 256, nbytes, np.uint8)


def allgather(call: Call, comm: MPI.Intracomm, nbytes: int, salt: int) -> bytes:
    """Gather equal blocks; return the result."""
    place = np.full(comm.size * nbytes, 7, np.uint8)
    call("Allgather", random_bytes(nbytes, salt, comm.rank), place)
    return place.tobytes()


def allgatherv(call: Call, comm: MPI.Intracomm, nbytes: int, salt: int) -> bytes:
    """Gather blocks that differ in size, to places with gaps; return all of these."""
    counts = [(rank + salt) % 3 * nbytes // 2 for rank in range(comm.size)]
    displs = [begin + 5 for begin in itertools.accumulate(counts, initial=0)][:-1]
    place = np.full(sum(counts) + 10, 7, np.uint8)
    mine = random_bytes(counts[comm.rank], salt, comm.rank)
    call("Allgatherv", mine, [place, counts, displs, MPI.BYTE])
    return place.tobytes()


def bcast(call: Call, comm: MPI.Intracomm, nbytes: int, salt: int) -> bytes:
    """Broadcast what the root alone has; return what has come."""
    data = random_bytes(nbytes, salt, comm.rank)
    call("Bcast", data, salt % comm.size)
    return data.tobytes()


OPERATIONS = (allgather, allgatherv, bcast)


def compare(comm: Intracomm, form: str, nbytes: int, salt: int) -> None:
    """Run every collective, and compare its result with the MPI library's."""
    library = MPI.Intracomm(MPI.COMM_WORLD)
    ours, theirs = partial(FORMS[form], comm), partial(run_at_once, library)
    for operation in OPERATIONS:
        expected = operation(theirs, library, nbytes, salt)
        found = operation(ours, comm, nbytes, salt)
        assert found == expected, (operation.__name__, nbytes, salt)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("who", WHO)
def test_results(make: Make, who: str, fault: str, form: str, seed: int) -> None:
    """Results of all sizes are the MPI library's, whatever the network does."""
    comm = make(who, fault=f"{fault},seed={seed}" if fault else "")
    gather_and_check(comm)  # which opens it, as a request would not
    for salt, nbytes in enumerate(SIZES):
        compare(comm, form, nbytes, salt)
    if comm.size > 1:
        assert comm.stats()["epochs"] > 0
        lost = comm.allreduce(comm.stats()["rx_lost_chunks"])
        assert lost > 0 or "loss" not in fault


@pytest.mark.parametrize("who", WHO)
def test_large_results(make: Make, who: str) -> None:
    """Large blocks in the largest chunks, some of them private and some engine memory.

    Results in memory of `mpimcast.empty` need no copy by the rank.
    """
    comm = make(who, chunk_bytes=0)
    compare(comm, "blocking", 3_000_001, 1)
    count = 250_000
    place = mpimcast.empty((comm.size, count), comm=comm)
    for step in range(3):
        comm.Allgather(np.full(count, comm.rank + 10.0 * step), place)
        assert (place == np.arange(comm.size)[:, None] + 10.0 * step).all()


@pytest.mark.parametrize(
    "settings",
    [
        {"chains": "all"},
        {"chains": 2, "subgroups": 3},
        {"subgroups": 2, "workers": "on"},
        {"checksum": "full", "protect": "off"},
        {"protect": "encrypt"},
        {"repair": "neighbour"},
        {"eager_bytes": 0},
        {"window_bytes": "8K"},
    ],
    ids=str,
)
@pytest.mark.parametrize("who", WHO)
def test_settings(
    make: Make, adapter: str, who: str, settings: dict[str, object], seed: int
) -> None:
    """Results are right under other settings, with losses.

    Adapters refuse to protect datagrams.
    """
    comm = make(who, **settings, fault=f"loss=0.05,dup=0.02,reorder=0.05,seed={seed}")
    if adapter and settings.get("protect") == "encrypt":
        with pytest.raises(ConfigError, match="firmware"):
            gather_and_check(comm)
        return
    for salt, nbytes in enumerate((0, 1, 1300, 40_000)):
        compare(comm, "blocking", nbytes, salt)


@pytest.mark.parametrize("who", WHO)
def test_many_at_once(make: Make, who: str, seed: int) -> None:
    """Requests in flight together, and one started again and again, stay apart."""
    comm = make(who, fault=f"loss=0.1,seed={seed}")
    gather_and_check(comm)
    sizes = (10, 0, 4000, 513, 20_000)
    sent = [random_bytes(nbytes, comm.rank, nbytes) for nbytes in sizes]
    places = [np.zeros((comm.size, nbytes), np.uint8) for nbytes in sizes]
    again, token = np.zeros((comm.size, 700)), np.full(700, comm.rank, float)
    persistent = comm.Allgather_init(token, again)
    for step in range(4):
        token.fill(step + comm.rank)
        requests = list(map(comm.Iallgather, sent, places))
        persistent.Start()
        for request in reversed(requests):
            request.Wait()
        persistent.Wait()
        assert (again[:, 0] == step + np.arange(comm.size)).all()
        for nbytes, place in zip(sizes, places, strict=True):
            for rank in range(comm.size):
                assert (place[rank] == random_bytes(nbytes, rank, nbytes)).all()
            place.fill(0)
    persistent.Free()


@pytest.mark.parametrize("who", WHO)
def test_derived_communicators(make: Make, who: str) -> None:
    """Duplicates and parts have proxies where their parent's ranks have them."""
    comm = make(who)
    twin, part = comm.Dup(), comm.Split(comm.rank % 2, -comm.rank)
    for each in (comm, twin, part, comm):
        gather_and_check(each)
    part.Free()
    twin.Free()


# ---- who runs what -----------------------------------------------------------


def test_explain_adapters(make: Make, adapter: str) -> None:
    """Each rank says that firmware runs its operations, or what runs others'."""
    if not adapter:
        pytest.skip("runs with --adapter")
    comms = {who: make(who) for who in WHO}
    require_two_ranks(comms["all"])
    for comm in comms.values():
        gather_and_check(comm)
    assert comms["all"].explain(5000).runner.startswith("firmware (process ")
    said = str(comms["odd"].explain(5000))
    assert "firmware on rank" in said
    assert "host on rank 0" in said


def test_explain(make: Make, proxies: Proxies) -> None:
    """Each rank names the proxy and its process, and tells ranks apart that differ."""
    comms = {who: make(who) for who in WHO}
    require_two_ranks(comms["all"])
    for comm in comms.values():
        gather_and_check(comm)
    name, runner = proxies.name, find(proxies.name)
    assert runner is not None
    assert comms["all"].explain(5000).runner == f"proxy {name} (process {runner.pid})"
    said = str(comms["odd"].explain(5000))
    assert "; run by host on rank" in said
    assert f"but proxy {name} on rank" in said


def test_ranks_share_a_proxy(make: Make, proxies: Proxies) -> None:
    """Ranks that need a proxy at the same time start one, which all of them use."""
    name = proxies.new_name()
    comm = make("all", proxy=name)
    require_two_ranks(comm)
    assert find(name) is None
    comm.Barrier()  # nobody starts it before all have looked
    gather_and_check(comm)
    runners = comm.allgather(str(comm.explain(5000).runner))
    assert len(set(runners)) == 1
    assert str(find(name)) == runners[0]


# ---- the life of a proxy -----------------------------------------------------


@pytest.mark.parametrize("who", WHO)
def test_nothing_is_left(make: Make, proxies: Proxies, who: str) -> None:
    """A proxy keeps no bell and no memory of communicators that were freed.

    Sockets do not count, since some stay members of a group for a while on purpose.
    """
    require_two_ranks(make(who))
    gather_and_check(make(who))
    runner = find(proxies.name)
    assert runner is not None

    def ndescriptors() -> int:
        found = Path(f"/proc/{runner.pid}/maps").read_text().count("/memfd:")
        for each in Path(f"/proc/{runner.pid}/fd").iterdir():
            with contextlib.suppress(FileNotFoundError):  # it has just been closed
                found += not str(each.readlink()).startswith("socket:")
        return found

    counts = []
    for ttl in range(2, 7):  # other settings for the endpoint, so another team
        comm = make(who, ttl=ttl)
        gather_and_check(comm)
        comm.Free()
        MPI.COMM_WORLD.Barrier()
        counts.append(ndescriptors())
        MPI.COMM_WORLD.Barrier()
    deadline_s = time.monotonic() + LIMIT_S
    while ndescriptors() > counts[0]:  # what ranks leave is closed a little later
        assert time.monotonic() < deadline_s, counts
        time.sleep(0.01)


def test_drain(make: Make, proxies: Proxies) -> None:
    """A proxy that drains serves its ranks to the end, and another takes its place."""
    name = proxies.new_name()
    old = make("all", proxy=name)
    require_two_ranks(old)
    gather_and_check(old)
    runner = find(name)
    assert runner is not None
    with Process(runner.pid) as process:
        old.Barrier()
        if old.rank == 0:
            process.send(signal.SIGTERM)
        deadline_s = time.monotonic() + LIMIT_S
        while find(name) is not None:
            assert time.monotonic() < deadline_s
            time.sleep(0.01)
        old.Barrier()
        new = make("all", proxy=name, ttl=2)
        for comm in (old, new, old, new):
            gather_and_check(comm)
        assert new.explain(5000).runner != old.explain(5000).runner
        assert not process.has_ended(0)
        old.Barrier()
        old.Free()
        assert process.has_ended(LIMIT_S)
        gather_and_check(new)


@pytest.mark.parametrize("who", WHO)
def test_a_proxy_that_is_killed(make: Make, proxies: Proxies, who: str) -> None:
    """All ranks fail within TIMEOUT; another communicator gets a new proxy."""
    name, timeout_s = proxies.new_name(), 3
    comm = make(who, proxy=name, timeout=timeout_s, late_timeout=timeout_s)
    require_two_ranks(comm)
    gather_and_check(comm)
    runner = find(name)
    assert runner is not None
    with Process(runner.pid) as process:
        MPI.COMM_WORLD.Barrier()
        if comm.rank == 0:
            process.send(signal.SIGKILL)
        assert process.has_ended(LIMIT_S)
    begin_s = time.monotonic()
    with pytest.raises(Error):
        gather_and_check(comm)
    assert time.monotonic() - begin_s < 2 * timeout_s + 1
    another = make(who, proxy=name, ttl=2)
    gather_and_check(another)
    replaced = find(name)
    assert replaced is not None
    assert replaced.pid != runner.pid


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
@pytest.mark.parametrize("who", WHO)
def test_an_adapter_that_stops(
    make: Make, adapter: str, who: str, number: signal.Signals
) -> None:
    """All ranks fail if adapters are reset, or if their processors stand still."""
    if not adapter:
        pytest.skip("runs with --adapter")
    timeout_s = 2
    comm = make(who, timeout=timeout_s, late_timeout=timeout_s)
    require_two_ranks(comm)
    gather_and_check(comm)
    runner = find(adapter)
    assert runner is not None
    comm.Barrier()
    if comm.rank == 0:
        for task in Path(f"/proc/{runner.pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                os.kill(int(child), number)
    begin_s = time.monotonic()
    with pytest.raises(Error):
        gather_and_check(comm)
    assert time.monotonic() - begin_s < 4 * timeout_s + 1
    gather_and_check(make(who, ttl=2))


def test_no_process_of_the_launcher(make: Make, proxies: Proxies) -> None:
    """A proxy has none of the variables by which an MPI library finds its job."""
    comm = make("all")
    require_two_ranks(comm)
    gather_and_check(comm)
    runner = find(proxies.name)
    assert runner is not None
    variables = Path(f"/proc/{runner.pid}/environ").read_bytes().split(b"\0")
    assert not [each for each in variables if each.startswith((b"PMI", b"OMPI_COMM"))]
    maps = Path(f"/proc/{runner.pid}/maps").read_text()
    assert "libmpi" not in maps
