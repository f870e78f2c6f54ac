# SPDX-License-Identifier: BSD-3-Clause
"""Python objects reach all ranks as by the MPI library's own methods."""

from __future__ import annotations

import array
import json
import pickle
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from mpi4py import MPI

from mpimcast import Error, Intracomm

Make = Callable[..., Intracomm]


@pytest.fixture
def comm(shared: Intracomm) -> Intracomm:
    """Return a communicator that all tests here leave as it was."""
    return shared


@pytest.fixture(autouse=True)
def settings() -> Iterator[MPI.Pickle]:
    """Yield mpi4py's settings of pickle, and restore the defaults."""
    MPI.pickle.__init__()  # type: ignore[misc]
    # Buffers go beside the stream from few bytes on.
    MPI.pickle.THRESHOLD = 100
    yield MPI.pickle
    MPI.pickle.__init__()  # type: ignore[misc]


class Point:
    """An object that is pickled by its attributes."""

    def __init__(self, *values: Any) -> None:
        self.values = values


def frozen(content: np.ndarray) -> np.ndarray:
    """Make an array read-only and return it."""
    content.flags.writeable = False
    return content


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


def same(one: Any, two: Any) -> None:
    """Check that two objects are equal in type, value, layout and writability."""
    assert type(one) is type(two)
    if isinstance(one, np.ndarray):
        assert (one.dtype, one.shape) == (two.dtype, two.shape)
        assert one.flags.writeable == two.flags.writeable
        assert one.flags.f_contiguous == two.flags.f_contiguous
        assert np.array_equal(one, two)
    elif isinstance(one, list | tuple):
        assert len(one) == len(two)
        for each, other in zip(one, two, strict=True):
            same(each, other)
        assert len({id(each) for each in one}) == len({id(each) for each in two})
    elif isinstance(one, Point):
        same(one.values, two.values)
    else:
        assert one == two


@pytest.mark.parametrize("name", OBJECTS)
def test_bcast(comm: Intracomm, name: str) -> None:
    """All ranks get the same object, and the root gets a copy."""
    for root in range(comm.size):
        sent = OBJECTS[name](root + 1) if comm.rank == root else "nothing"
        got = comm.bcast(sent, root)
        same(got, MPI.Intracomm.bcast(comm, sent, root))
        if isinstance(got, np.ndarray | bytearray) and len(got):
            assert got is not sent


@pytest.mark.parametrize("name", OBJECTS)
def test_allgather(comm: Intracomm, name: str) -> None:
    """All ranks get the same list of objects."""
    sent = OBJECTS[name](comm.rank)
    same(comm.allgather(sent), MPI.Intracomm.allgather(comm, sent))


def test_allgather_of_different_objects(comm: Intracomm) -> None:
    """Each rank may pass an object of another kind."""
    makers = list(OBJECTS.values())
    for turn in range(5):
        sent = makers[(comm.rank * 7 + turn * 4) % len(makers)](comm.rank)
        same(comm.allgather(sent), MPI.Intracomm.allgather(comm, sent))


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


def test_the_way_of_parts(make: Make) -> None:
    """Only parts above MIN_BYTES are multicast; small objects go to the MPI library."""
    comm = make(min_bytes=1000)
    comm.bcast({"a": 1})
    comm.allgather(comm.rank)
    assert comm.stats()["epochs"] == 0
    comm.bcast([np.zeros(1000), np.ones(1000), bytearray(10)])
    assert comm.stats()["epochs"] == (2 if comm.size > 1 else 0)
    comm.allgather(np.zeros(1000))
    assert comm.stats()["epochs"] == (3 if comm.size > 1 else 0)


def test_loss(make: Make, seed: int) -> None:
    """Objects arrive intact where datagrams are lost."""
    comm = make(fault=f"loss=0.1,dup=0.02,reorder=0.05,seed={seed}")
    for root in range(comm.size):
        same(comm.bcast(OBJECTS["large"](root), root), OBJECTS["large"](root))
    same(comm.allgather(Point(comm.rank)), [Point(rank) for rank in range(comm.size)])


def to_json(obj: Any) -> bytes:
    """Serialise an object as JSON."""
    return json.dumps(obj).encode()


def from_json(data: Any) -> Any:
    """Restore an object from JSON."""
    return json.loads(bytes(data))


def of_two(obj: Any, protocol: int) -> bytes:
    """Pickle an object without buffers beside the stream."""
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
        {"dumps": of_two, "protocol": 5},
        {"dumps": to_json, "loads": from_json},
        {"dumps": lambda _: b""},
    ],
    ids=str,
)
def test_settings_of_pickle(
    comm: Intracomm, settings: MPI.Pickle, given: dict[str, Any]
) -> None:
    """Settings that users make in ``MPI.pickle`` take effect."""
    settings.__init__(**given)  # type: ignore[misc]
    objects = [[1, {"a": None}, "text"]]
    if "loads" not in given:
        objects += [np.arange(90), bytearray(300), np.zeros(0), [np.zeros(50), None]]
    for sent in objects:
        same(comm.bcast(sent), MPI.Intracomm.bcast(comm, sent))
        same(comm.allgather(sent), MPI.Intracomm.allgather(comm, sent))


class Broken:
    """An object whose pickle cannot be loaded."""

    def __reduce__(self) -> Any:
        """Return a call of a function that fails."""
        return (int, ("no number",))


UNPICKLABLE: dict[str, tuple[Callable[[], Any], type[BaseException]]] = {
    "a lock": (threading.Lock, TypeError),
    "a function": (lambda: lambda: None, Exception),
    "without end": (lambda: _nested(100_000), RecursionError),
}


def _nested(depth: int) -> list[Any]:
    inner: list[Any] = []
    for _ in range(depth):
        inner = [inner]
    return inner


@pytest.mark.parametrize("name", UNPICKLABLE)
def test_what_cannot_be_pickled(comm: Intracomm, name: str) -> None:
    """An unpicklable object raises as in mpi4py on its rank, and an Error elsewhere."""
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
            assert theirs_name(kind) in str(told.value)
            assert told.value.ranks == (bad,)
        assert comm.allgather(comm.rank) == list(range(comm.size))


def theirs_name(kind: type[BaseException]) -> str:
    """Return the name of an exception, or "" if any exception is expected."""
    return "" if kind is Exception else kind.__name__


def test_what_cannot_be_made_again(comm: Intracomm) -> None:
    """A pickle that cannot be loaded raises as in mpi4py, once all data has arrived."""
    for call in (lambda: comm.bcast(Broken()), lambda: comm.allgather(Broken())):
        with pytest.raises(ValueError, match="no number"):
            call()
        assert comm.bcast(comm.rank, comm.size - 1) == comm.size - 1


def test_not_bytes(comm: Intracomm, settings: MPI.Pickle) -> None:
    """A user's function that returns no bytes is refused in mpi4py's words."""
    settings.__init__(json.dumps, json.loads)  # type: ignore[misc]
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


def test_bypassed(make: Make) -> None:
    """With TRANSPORT=mpi objects go to the MPI library too."""
    comm = make(transport="mpi")
    for turn in range(3):
        assert comm.bcast(turn) == turn
        same(comm.allgather(bytearray(900)), [bytearray(900) for _ in range(comm.size)])
    assert comm.stats()["epochs"] == 0


def test_inter(comm: Intracomm) -> None:
    """Collectives of an intercommunicator are the MPI library's, and work."""
    if comm.size == 1:
        return
    low = comm.rank < comm.size // 2
    half = comm.Split(int(low))
    between = half.Create_intercomm(0, comm, comm.size // 2 if low else 0)
    there = list(range(comm.size))
    there = there[comm.size // 2 :] if low else there[: comm.size // 2]
    assert between.allgather(comm.rank) == there
    place = np.full(len(there), -1)
    between.Allgatherv(np.array([comm.rank]), [place, [1] * len(there)])
    assert place.tolist() == there
    root = (MPI.ROOT if half.rank == 0 else MPI.PROC_NULL) if low else 0
    got = between.bcast("from low" if low else None, root)
    assert got == (None if low else "from low")
    data = np.full(4, 5.0 if low else 0.0)
    between.Bcast(data, root)
    assert (data == 5).all()
    between.Free()
    half.Free()


@pytest.mark.parametrize("name", ["bcast", "allgather"])
def test_threads_on_one_communicator(make: Make, name: str) -> None:
    """Calls of several threads do not mix, in whichever order each rank makes them."""
    if MPI.Query_thread() < MPI.THREAD_MULTIPLE:
        pytest.skip("needs MPI_THREAD_MULTIPLE")
    comm = make()
    plan = [(thread, call) for thread in range(3) for call in range(4)]
    got: list[Any] = []

    def thing(rank: int, thread: int, call: int) -> tuple[Any, ...]:
        size = 1 + (7 * thread + 3 * call + rank) % 11 * 500
        return rank, thread, call, bytes(size), np.full(size, thread, np.uint8)

    def work(thread: int) -> None:
        for _, call in plan[:4]:
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
