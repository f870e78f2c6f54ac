# SPDX-License-Identifier: BSD-3-Clause
"""The bcast and allgather of Python objects compared with mpi4py's own methods."""

# ruff: noqa: SLF001 -- looks at what ranks have agreed on

from __future__ import annotations

import json
import pickle
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from gathering import started
from mpi4py import MPI
from things import OBJECTS, Point, check_same

from mpimcast import Error, Intracomm

Make = Callable[..., Intracomm]


# With the first no object is small; with the last almost all are.
LIMITS = (0, 200, 65536)


@pytest.fixture(scope="module", params=LIMITS, ids="min_bytes={}".format)
def comm(request: pytest.FixtureRequest) -> Iterator[Intracomm]:
    """Yield one communicator for all tests here, none of which spoils it."""
    settings = {"transport": "udp", "chunk_bytes": 512, "min_bytes": request.param}
    comm = Intracomm(MPI.Intracomm(MPI.COMM_WORLD).Dup(), **settings)
    yield comm
    comm.Free()


@pytest.fixture(autouse=True)
def pickler() -> Iterator[MPI.Pickle]:
    """Yield mpi4py's pickler with its default settings; restore them at the end.

    But even small buffers, from 100 bytes on, are sent apart from the pickle.
    """
    MPI.pickle.__init__()  # type: ignore[misc]
    MPI.pickle.THRESHOLD = 100
    yield MPI.pickle
    MPI.pickle.__init__()  # type: ignore[misc]


@pytest.mark.parametrize("name", OBJECTS)
def test_bcast(comm: Intracomm, name: str) -> None:
    """All ranks get the same object, and the root gets a copy."""
    for root in range(comm.size):
        sent = OBJECTS[name](root + 1) if comm.rank == root else "nothing"
        got = comm.bcast(sent, root)
        check_same(got, MPI.Intracomm.bcast(comm, sent, root))
        if isinstance(got, np.ndarray | bytearray) and len(got):
            assert got is not sent


@pytest.mark.parametrize("name", OBJECTS)
def test_allgather(comm: Intracomm, name: str) -> None:
    """All ranks get the same list of objects."""
    sent = OBJECTS[name](comm.rank)
    check_same(comm.allgather(sent), MPI.Intracomm.allgather(comm, sent))


def test_allgather_of_different_objects(comm: Intracomm) -> None:
    """Each rank may pass an object of another kind."""
    makers = list(OBJECTS.values())
    for turn in range(5):
        sent = makers[(comm.rank * 7 + turn * 4) % len(makers)](comm.rank)
        check_same(comm.allgather(sent), MPI.Intracomm.allgather(comm, sent))


@pytest.mark.parametrize("nbytes", [111, 112, 113, 239, 240, 241, 65535, 65536])
def test_sizes_around_limits(comm: Intracomm, nbytes: int) -> None:
    """A pickle that just fits in a header arrives, as one that just does not."""
    overhead = len(pickle.dumps(bytes(nbytes), 5)) - nbytes
    sent = bytes([comm.rank]) * (nbytes - overhead)
    assert comm.allgather(sent) == MPI.Intracomm.allgather(comm, sent)
    for root in range(comm.size):
        assert comm.bcast(sent, root) == MPI.Intracomm.bcast(comm, sent, root)


@pytest.mark.parametrize("large", ["text", "array", "many arrays", "large"])
def test_one_large_object(comm: Intracomm, large: str) -> None:
    """One rank's object is large, those of the other ranks are small."""
    for rank in range(comm.size):
        sent = OBJECTS[large](rank + 1) if comm.rank == rank else comm.rank
        check_same(comm.allgather(sent), MPI.Intracomm.allgather(comm, sent))


def test_copies_are_apart(comm: Intracomm) -> None:
    """A change of one copy changes neither another copy nor the original."""
    sent = np.zeros(100)
    first, *_ = comm.allgather([sent, sent.copy()])
    first[0].fill(1)
    assert not sent.any()
    assert not first[1].any()
    got = comm.bcast(sent, 0)
    got.fill(1)
    assert not sent.any()


def test_small_objects_take_one_collective(make_comm: Make) -> None:
    """Small objects are the MPI library's, once the ranks have agreed on settings.

    Until then a small object makes them agree, as any other collective does.
    """
    comm = make_comm(min_bytes=1000)
    state = comm._comm_state
    assert state is not None
    assert not state.thresholds.agreed_bytes
    comm.bcast(1)
    assert state.thresholds.agreed_bytes == (1000 if comm.size > 1 else 0)
    before = {**comm.stats(), "calls_small": 0}
    for sent in (None, 1, "text", {"a": [1]}, np.zeros(3), np.zeros(90)):
        check_same(comm.bcast(sent), sent)
        check_same(comm.allgather(sent), MPI.Intracomm.allgather(comm, sent))
    assert {**comm.stats(), "calls_small": 0} == before


def test_parts_below_min_bytes(make_comm: Make) -> None:
    """The parts of an object that reach MIN_BYTES are multicast, each by itself.

    Smaller parts, and the pickle if it is small, go to the MPI library.
    """
    comm = make_comm(min_bytes=1000)
    comm.bcast({"a": 1})
    comm.allgather(comm.rank)
    assert started(comm) == 0
    comm.bcast([np.zeros(1000), np.ones(1000), bytearray(10)])
    assert started(comm) == (2 if comm.size > 1 else 0)
    comm.allgather(np.zeros(1000))
    assert started(comm) == (3 if comm.size > 1 else 0)


def test_loss(make_comm: Make, seed: int) -> None:
    """Objects arrive intact where datagrams are lost."""
    comm = make_comm(fault=f"loss=0.1,dup=0.02,reorder=0.05,seed={seed}")
    for root in range(comm.size):
        check_same(comm.bcast(OBJECTS["large"](root), root), OBJECTS["large"](root))
    check_same(
        comm.allgather(Point(comm.rank)), [Point(rank) for rank in range(comm.size)]
    )


def to_json(obj: Any) -> bytes:
    """Write an object as JSON."""
    return json.dumps(obj).encode()


def from_json(data: Any) -> Any:
    """Read an object from JSON."""
    return json.loads(bytes(data))


def dumps_in_band(obj: Any, protocol: int) -> bytes:
    """Pickle an object with its buffers; takes no ``buffer_callback``."""
    return pickle.dumps(obj, protocol)


@pytest.mark.parametrize(
    "given",
    [
        {"protocol": 4},
        {"protocol": 0},
        {"protocol": -1, "threshold": 50},
        {"threshold": 0},
        {"threshold": 1 << 40},
        {"dumps": pickle.dumps},
        {"dumps": pickle.dumps, "protocol": 5, "threshold": 0},
        {"dumps": dumps_in_band, "protocol": 5},
        {"dumps": to_json, "loads": from_json},
        {"dumps": lambda _: b""},
    ],
    ids=str,
)
def test_settings_of_pickle(
    comm: Intracomm, pickler: MPI.Pickle, given: dict[str, Any]
) -> None:
    """What users set in ``MPI.pickle`` takes effect as in mpi4py."""
    pickler.__init__(**given)  # type: ignore[misc]
    objects = [[1, {"a": None}, "text"]]
    if "loads" not in given:
        objects += [np.arange(90), bytearray(300), np.zeros(0), [np.zeros(50), None]]
    for sent in objects:
        check_same(comm.bcast(sent), MPI.Intracomm.bcast(comm, sent))
        check_same(comm.allgather(sent), MPI.Intracomm.allgather(comm, sent))


@pytest.mark.parametrize(
    "given", [{"protocol": 4}, {"threshold": 1}, {"dumps": pickle.dumps}], ids=str
)
def test_settings_of_one_rank(
    comm: Intracomm, pickler: MPI.Pickle, given: dict[str, Any]
) -> None:
    """One rank's pickles differ from those of the others, but all can load them."""
    if comm.rank == comm.size - 1:
        pickler.__init__(**given)  # type: ignore[misc]
    for sent in (comm.rank, "x" * 150, np.arange(90), [np.zeros(50), None]):
        check_same(comm.allgather(sent), MPI.Intracomm.allgather(comm, sent))
        for root in range(comm.size):
            check_same(comm.bcast(sent, root), MPI.Intracomm.bcast(comm, sent, root))


class Broken:
    """An object whose pickle cannot be loaded."""

    def __reduce__(self) -> Any:
        """Return a call of a function that fails."""
        return (int, ("no number",))


# By name: what makes an object that cannot be pickled, and what that raises.
UNPICKLABLE: dict[str, tuple[Callable[[], Any], type[BaseException]]] = {
    "a lock": (threading.Lock, TypeError),
    "a function": (lambda: lambda: None, Exception),
    "too deeply nested": (lambda: _nested(100_000), RecursionError),
}


def _nested(depth: int) -> list[Any]:
    """Return a list in a list, and so on, `depth` times."""
    inner: list[Any] = []
    for _ in range(depth):
        inner = [inner]
    return inner


@pytest.mark.parametrize("other", ["text", "large"])
def test_failures_beside_others(comm: Intracomm, other: str) -> None:
    """One rank cannot pickle its object; the others' are small, or large, or fail."""
    bad = {0, comm.size - 1}
    sent = threading.Lock() if comm.rank in bad else OBJECTS[other](comm.rank)
    kind = TypeError if comm.rank in bad else Error
    with pytest.raises(kind, match="pickle") as caught:
        comm.allgather(sent)
    if isinstance(caught.value, Error):
        assert caught.value.ranks == tuple(sorted(bad))
    check_same(comm.allgather(comm.rank), list(range(comm.size)))


@pytest.mark.parametrize("name", UNPICKLABLE)
def test_what_cannot_be_pickled(comm: Intracomm, name: str) -> None:
    """On the rank of an unpicklable object mpi4py's exception is raised.

    All other ranks raise an Error that names the rank and, except for a function, whose
    exception depends on the Python version, the exception.
    """
    make, kind = UNPICKLABLE[name]
    bad = comm.size - 1
    sent = make() if comm.rank == bad else "well"
    if comm.rank == bad:
        with pytest.raises(kind) as theirs:
            MPI.COMM_SELF.bcast(sent)
    for call in (lambda: comm.bcast(sent, bad), lambda: comm.allgather(sent)):
        if comm.rank == bad:
            with pytest.raises(theirs.type) as ours:
                call()
            assert str(ours.value) == str(theirs.value)
        else:
            with pytest.raises(Error, match=f"rank {bad}.*could not pickle") as told:
                call()
            assert expected_name(kind) in str(told.value)
            assert told.value.ranks == (bad,)
        assert comm.allgather(comm.rank) == list(range(comm.size))


def expected_name(kind: type[BaseException]) -> str:
    """Return the name of an exception, or "" for Exception, which stands for any."""
    return "" if kind is Exception else kind.__name__


def test_what_cannot_be_unpickled(comm: Intracomm) -> None:
    """A pickle that cannot be loaded raises as in mpi4py; the next call succeeds."""
    for call in (lambda: comm.bcast(Broken()), lambda: comm.allgather(Broken())):
        with pytest.raises(ValueError, match="no number"):
            call()
        assert comm.bcast(comm.rank, comm.size - 1) == comm.size - 1


@pytest.mark.parametrize("sent", [1, [[1], 2]], ids=str)
def test_dumps_must_return_bytes(
    comm: Intracomm, pickler: MPI.Pickle, sent: Any
) -> None:
    """If the user's `dumps` does not return bytes, mpi4py's exception is raised."""
    pickler.__init__(json.dumps, json.loads)  # type: ignore[misc]
    for name in ("allgather", "bcast"):
        with pytest.raises(TypeError) as theirs:
            getattr(MPI.Intracomm, name)(MPI.COMM_SELF, sent)
        failing = comm.rank == 0 or name == "allgather"
        with pytest.raises(TypeError if failing else Error) as ours:
            getattr(comm, name)(sent)
        if failing:
            assert str(ours.value) == str(theirs.value)


@pytest.mark.parametrize("root", [-9, "size", MPI.PROC_NULL, "0", None])
def test_bad_roots(comm: Intracomm, root: Any) -> None:
    """A root that does not exist is refused as by mpi4py."""
    root = comm.size if root == "size" else root
    with pytest.raises((MPI.Exception, TypeError)) as theirs:
        MPI.Intracomm.bcast(comm, 1, root)
    with pytest.raises(theirs.type):
        comm.bcast(1, root)


def test_transport_mpi(make_comm: Make) -> None:
    """With TRANSPORT=mpi objects go to the MPI library, too."""
    comm = make_comm(transport="mpi")
    for turn in range(3):
        assert comm.bcast(turn) == turn
        check_same(
            comm.allgather(bytearray(900)), [bytearray(900) for _ in range(comm.size)]
        )
    assert started(comm) == 0


def test_intercommunicator(comm: Intracomm) -> None:
    """An intercommunicator between two halves has the MPI library's collectives."""
    if comm.size == 1:
        return
    in_low = comm.rank < comm.size // 2
    half = comm.Split(int(in_low))
    between = half.Create_intercomm(0, comm, comm.size // 2 if in_low else 0)
    ranks = list(range(comm.size))
    others = ranks[comm.size // 2 :] if in_low else ranks[: comm.size // 2]
    assert between.allgather(comm.rank) == others
    place = np.full(len(others), -1)
    between.Allgatherv(np.array([comm.rank]), [place, [1] * len(others)])
    assert place.tolist() == others
    # The first rank of the low half broadcasts to the high half.
    root = (MPI.ROOT if half.rank == 0 else MPI.PROC_NULL) if in_low else 0
    got = between.bcast("from low" if in_low else None, root)
    assert got == (None if in_low else "from low")
    data = np.full(4, 5.0 if in_low else 0.0)
    between.Bcast(data, root)
    assert (data == 5).all()
    between.Free()
    half.Free()


@pytest.mark.parametrize("name", ["bcast", "allgather"])
def test_threads_on_one_communicator(make_comm: Make, name: str) -> None:
    """Three threads may call at once: every object arrives whole, and once.

    Which calls of two ranks meet depends on the order in which each rank's threads
    come, so the objects are compared without regard to order.
    """
    if MPI.Query_thread() < MPI.THREAD_MULTIPLE:
        pytest.skip("needs MPI_THREAD_MULTIPLE")
    comm = make_comm()
    plan = [(thread, call) for thread in range(3) for call in range(4)]
    got: list[Any] = []

    def thing(rank: int, thread: int, call: int) -> tuple[Any, ...]:
        size = 1 + (7 * thread + 3 * call + rank) % 11 * 500
        return rank, thread, call, bytes(size), np.full(size, thread, np.uint8)

    def work(thread: int) -> None:
        for call in range(4):
            mine = thing(comm.rank, thread, call)
            got.append(comm.bcast(mine) if name == "bcast" else comm.allgather(mine))

    threads = [threading.Thread(target=work, args=(index,)) for index in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    columns = [got] if name == "bcast" else zip(*got, strict=True)
    for rank, column in enumerate(columns):
        received = sorted(column, key=lambda each: each[:3])
        for each, (thread, call) in zip(received, plan, strict=True):
            expected = thing(rank, thread, call)
            assert each[:4] == expected[:4]
            assert np.array_equal(each[4], expected[4])
