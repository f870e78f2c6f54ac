# SPDX-License-Identifier: BSD-3-Clause
"""The bcast and allgather of Python objects compared with mpi4py's own methods."""

from __future__ import annotations

import array
import json
import pickle
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from gathering import started
from mpi4py import MPI

from mpimcast import Error, Intracomm

Make = Callable[..., Intracomm]


@pytest.fixture
def comm(shared_comm: Intracomm) -> Intracomm:
    """Return one communicator for all tests here, none of which spoils it."""
    return shared_comm


@pytest.fixture(autouse=True)
def pickler() -> Iterator[MPI.Pickle]:
    """Yield mpi4py's pickler with its default settings; restore them at the end.

    But even small buffers, from 100 bytes on, are sent apart from the pickle.
    """
    MPI.pickle.__init__()  # type: ignore[misc]
    MPI.pickle.THRESHOLD = 100
    yield MPI.pickle
    MPI.pickle.__init__()  # type: ignore[misc]


class Point:
    """An object that is pickled by its attributes."""

    def __init__(self, *values: Any) -> None:
        self.values = values


def frozen(content: np.ndarray) -> np.ndarray:
    """Make an array read-only, and return it."""
    content.flags.writeable = False
    return content


# By name: what makes an object, given a number that it depends on, such as a rank.
OBJECTS: dict[str, Callable[[int], Any]] = {
    "None": lambda _: None,
    "number": lambda rank: rank,
    "text": lambda rank: "x" * 700 * rank,
    "nested": lambda rank: {"a": [rank, (1.5, None)], 3: {b"bytes", rank}},
    "array": lambda rank: np.arange(100.0) + rank,
    "frozen array": lambda rank: frozen(np.arange(100) * rank),
    "Fortran array": lambda rank: np.asfortranarray(np.full((20, 10), rank)),
    "strided array": lambda rank: np.arange(400)[:: rank + 2],
    "empty array": lambda _: np.zeros((0, 3)),
    "array of objects": lambda rank: np.array([rank, "a", None], object),
    "records": lambda rank: np.array([(rank, 2.5)] * 30, "i4,f8"),
    "scalar": np.float32,
    "many arrays": lambda rank: [np.full(20 + each, rank) for each in range(3 * rank)],
    "the same twice": lambda rank: [np.full(50, rank)] * 2,
    "bytearray": lambda rank: bytearray([rank]) * 500,
    "bytes": lambda rank: bytes([rank]) * 500,
    "array.array": lambda rank: array.array("d", [rank] * 50),
    "PickleBuffer": lambda rank: pickle.PickleBuffer(bytearray([rank]) * 300),
    "frozen PickleBuffer": lambda rank: pickle.PickleBuffer(bytes([rank]) * 300),
    "own class": lambda rank: Point(rank, np.arange(1000), frozen(np.zeros(40))),
    "large": lambda rank: [np.arange(30_000) + rank, bytes(10_000), np.zeros(9_000)],
}


def check_same(one: Any, two: Any) -> None:
    """Check that two objects are equal in type, value, layout and writability.

    Parts that are one object on one side must be one object on the other side, too.
    """
    assert type(one) is type(two)
    if isinstance(one, np.ndarray):
        assert (one.dtype, one.shape) == (two.dtype, two.shape)
        assert one.flags.writeable == two.flags.writeable
        assert one.flags.f_contiguous == two.flags.f_contiguous
        assert np.array_equal(one, two)
    elif isinstance(one, list | tuple):
        assert len(one) == len(two)
        for each, other in zip(one, two, strict=True):
            check_same(each, other)
        assert len({id(each) for each in one}) == len({id(each) for each in two})
    elif isinstance(one, Point):
        check_same(one.values, two.values)
    else:
        assert one == two


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


def test_dumps_must_return_bytes(comm: Intracomm, pickler: MPI.Pickle) -> None:
    """If the user's `dumps` does not return bytes, mpi4py's exception is raised."""
    pickler.__init__(json.dumps, json.loads)  # type: ignore[misc]
    with pytest.raises(TypeError) as theirs:
        MPI.Intracomm.allgather(comm, 1)
    with pytest.raises(TypeError) as ours:
        comm.allgather(1)
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
