# SPDX-License-Identifier: BSD-3-Clause
"""The express way: what it hands to C for each call, and which calls it leaves alone.

C's functions are Python's here, so each operation is seen as C gets it.
"""

from __future__ import annotations

import contextlib
import ctypes
import random
import sys
import threading
from array import array
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest
import support

from mpimcast._session import targets
from mpimcast._small import Express, Limits
from mpimcast._support.shared_memory import SharedMemory, shared_memory

NRANKS, RANK = 4, 1
ALLGATHER, BCAST, NODE_BARRIER = 1, 3, 4
UNKNOWN, OURS, LIBRARY = range(3)
EAGAIN = 1
IN_PLACE = object()
COMM: Any = object()


class Operation(ctypes.Structure):
    """C's struct mmc_operation."""

    _fields_ = (
        *((name, ctypes.c_uint32) for name in ("kind", "root", "notifies")),
        ("block_bytes", ctypes.c_uint64),
        *((name, ctypes.c_void_p) for name in ("blocks", "offsets", "send", "recv")),
        ("shared", ctypes.c_uint64),
    )


class Started(NamedTuple):
    """What C was told of an operation."""

    kind: int
    nbytes: int
    send: int | None
    recv: int | None
    root: int = 0
    shared: int = 0


START = ctypes.CFUNCTYPE(
    ctypes.c_int,
    ctypes.c_void_p,
    ctypes.POINTER(Operation),
    ctypes.c_uint64,
    ctypes.POINTER(ctypes.c_void_p),
)
END = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
EPOCH = ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_void_p)


@contextlib.contextmanager
def shared(buffer: Any) -> Iterator[None]:
    """Let a buffer lie in memory that ranks share."""
    Limits.hold_back(targets.holds)
    begin, end = address_of(buffer), address_of(buffer) + buffer.nbytes
    shared_memory.add(SharedMemory(begin, end, 1, frozenset()))
    yield
    shared_memory.remove(begin)


class Stage:
    """An express way, and C's functions and Python's around it."""

    def __init__(self, *, small_bytes: int = 0) -> None:
        self.started: list[Started] = []
        self.library: list[tuple[object, ...]] = []
        self.finished: list[tuple[Any, ...]] = []
        self.ended: list[tuple[str, int]] = []
        self.asked: list[int] = []
        self.status, self.request = 0, 0  # what starting an operation results in
        self.epoch, self.suspended = 0, False
        self.key = 0
        self.finish: Callable[..., None] = self._finish
        self.functions = (
            START(self._start),
            END(lambda request: self.ended.append(("cancel", request))),
            END(lambda request: self.ended.append(("free", request))),
            EPOCH(lambda _: self.epoch),
        )
        self.limits = Limits()
        self.limits.set(small_bytes * NRANKS, small_bytes)
        self.way = Express(self.limits, self._library("A"), self._library("B"))

    def begin(self) -> Stage:
        """Let the express way begin."""
        addresses = (
            ctypes.cast(each, ctypes.c_void_p).value for each in self.functions
        )
        numbers = tuple(np.dtype(code) for code in "dfBliq")
        self.way.begin(
            (1, 2, *addresses),
            (1000, RANK, NRANKS),
            (np.ndarray, numbers, shared_memory, IN_PLACE),
            (
                lambda *given: self.finish(*given),  # noqa: PLW0108 -- tests replace it
                lambda address: self.find_key(address),  # noqa: PLW0108
                self._watch,
            ),
        )
        return self

    def _start(self, stream: int, operation: Any, slice_ns: int, request: Any) -> int:
        assert (stream, slice_ns) == (1, 1000)
        each = operation.contents
        self.started.append(
            Started(
                each.kind,
                each.block_bytes,
                each.send,
                each.recv,
                each.root,
                each.shared,
            )
        )
        request[0] = self.request or None
        return self.status

    def _finish(self, place: int, name: str, *arguments: object) -> None:
        request = ctypes.c_void_p.from_address(place)
        self.finished.append((request.value, name, *arguments))
        request.value = None

    def find_key(self, address: int) -> int:
        """Return what names the place of a result."""
        self.asked.append(address)
        return self.key

    def _watch(self) -> bool:
        self.suspended = self.epoch != 0
        return self.suspended

    def _library(self, name: str) -> Callable[..., None]:
        return lambda *arguments: self.library.append((name, *arguments))


@pytest.fixture
def stage() -> Stage:
    """Return an open express way on which mpimcast carries everything."""
    made = Stage().begin()
    made.way.take_all()
    return made


def address_of(buffer: Any) -> int:
    """Return the address of a buffer's memory."""
    return int(np.frombuffer(buffer, np.uint8).ctypes.data)


# ---- what crosses ------------------------------------------------------------


@pytest.mark.parametrize(
    "make",
    [
        lambda n: np.zeros(n // 8),
        lambda n: np.zeros((2, n // 2), np.uint8),
        bytearray,
        lambda n: array("i", [0] * (n // 4)),
        lambda n: memoryview(bytearray(n)),
        lambda n: memoryview(np.zeros((2, n // 16))),
    ],
)
def test_plain_buffers(stage: Stage, make: Callable[[int], Any]) -> None:
    """C gets the addresses and sizes of arrays, and of other simple buffers."""
    block, blocks = make(16), make(16 * NRANKS)
    assert stage.way.allgather(COMM, block, blocks)
    assert stage.way.allgather(COMM, IN_PLACE, blocks)
    assert stage.way.allgather(COMM, None, blocks)
    assert stage.way.bcast(COMM, blocks, 2)
    send, recv = address_of(block), address_of(blocks)
    assert stage.started == [
        Started(ALLGATHER, 16, send, recv),
        Started(ALLGATHER, 16, None, recv),
        Started(ALLGATHER, 16, None, recv),
        Started(BCAST, 16 * NRANKS, None, recv, root=2),
    ]
    assert stage.way.counts()[0] == 4
    assert stage.way.counts()[2:] == (0, 0)


def test_a_block_in_its_place(stage: Stage) -> None:
    """A block that is passed where it belongs is in place, in private memory."""
    blocks = np.zeros((NRANKS, 3))
    assert stage.way.allgather(COMM, blocks[RANK], blocks)
    assert stage.started == [Started(ALLGATHER, 24, None, blocks.ctypes.data)]
    stage.key = 77
    with shared(blocks):
        assert stage.way.allgather(COMM, blocks[RANK], blocks)
    own = blocks[RANK].ctypes.data
    assert stage.started[1] == Started(
        ALLGATHER, 24, own, blocks.ctypes.data, shared=77
    )


def test_only_a_root_may_be_read_only(stage: Stage) -> None:
    """A Bcast writes to no buffer of its root."""
    assert stage.way.bcast(COMM, b"bytes", RANK)
    assert not stage.way.bcast(COMM, b"bytes", RANK + 1)


STRIDED = np.zeros(4 * NRANKS)[::2]
READ_ONLY = np.frombuffer(bytes(8 * NRANKS))


class Sub(np.ndarray):  # type: ignore[type-arg]
    """An array of a class of its own."""


@pytest.mark.parametrize(
    "blocks",
    [
        STRIDED,
        READ_ONLY,
        np.zeros(NRANKS, ">f8"),
        np.zeros(NRANKS, "M8[s]"),
        np.zeros(NRANKS, object),
        np.zeros(NRANKS).view(Sub),
        np.zeros(8 * NRANKS - 1, np.uint8),
        [np.zeros(NRANKS), NRANKS],
        memoryview(bytearray(8 * NRANKS)).cast("c"),
        memoryview(STRIDED),
        bytes(8 * NRANKS),
        None,
        IN_PLACE,
        7,
    ],
)
def test_others_are_left_alone(stage: Stage, blocks: Any) -> None:
    """Whatever needs more thought is Python's: nothing starts or is raised."""
    assert not stage.way.allgather(COMM, np.zeros(1), blocks)
    assert stage.started == []
    assert stage.way.counts() == (0, 0, 0, 0)


@pytest.mark.parametrize(
    "block", [np.zeros(2), np.zeros(4)[::2], np.zeros(1, object), [np.zeros(1), 1], 0]
)
def test_other_blocks_are_left_alone(stage: Stage, block: Any) -> None:
    """So is a block of another size or form; the buffers are free again."""
    blocks = bytearray(8 * NRANKS)
    assert not stage.way.allgather(COMM, block, blocks)
    assert stage.started == []
    blocks.append(0)  # raises a BufferError while anybody holds the memory


@pytest.mark.parametrize("root", [-1, NRANKS, 1 << 80, 1.0, np.int64(1), True, None])
def test_other_roots_are_left_alone(stage: Stage, root: Any) -> None:
    """Only a rank's plain number crosses."""
    assert not stage.way.bcast(COMM, np.zeros(1), root)
    assert stage.started == []


def test_every_change_is_seen(stage: Stage) -> None:
    """Each call is judged by what its buffers are now, whatever earlier calls were."""
    seed = support.choose_seed()
    rng = random.Random(seed)
    blocks = np.zeros((NRANKS, 2))
    expected = []
    for _ in range(300):
        change = rng.choice(["address", "size", "type", "in place", "root", "same"])
        if change == "address":
            blocks = np.zeros_like(blocks)
        elif change == "size":
            blocks = np.zeros((NRANKS, rng.randrange(1, 9)), blocks.dtype)
        elif change == "type":  # of as many bytes
            blocks = blocks.view(rng.choice(["f8", "i8", ">i8", "M8[s]", "u8"]))
        plain = blocks.dtype in (np.float64, np.int64)
        nbytes = blocks.nbytes
        if change == "root":
            root = rng.choice([RANK, 0, NRANKS])
            assert stage.way.bcast(COMM, blocks, root) == (plain and root < NRANKS)
            told = Started(BCAST, nbytes, None, blocks.ctypes.data, root)
            expected += [told] * (plain and root < NRANKS)
            continue
        block = None if change == "in place" else np.zeros_like(blocks[RANK])
        assert stage.way.allgather(COMM, block, blocks) == plain
        send = None if block is None else block.ctypes.data
        told = Started(ALLGATHER, nbytes // NRANKS, send, blocks.ctypes.data)
        expected += [told] * plain
    assert stage.started == expected


def test_nothing_is_allocated(stage: Stage) -> None:
    """Calls leave no object behind, whoever carries them."""
    block, blocks = np.zeros(1), np.zeros(NRANKS)
    quiet = Express(Limits(), lambda *_: None, lambda *_: None)

    def call(way: Express) -> None:
        for _ in range(1000):
            way.allgather(COMM, block, blocks)
            way.bcast(COMM, blocks, 0)

    stage.functions = (START(lambda *_: 0), *stage.functions[1:])
    stage.way = Express(stage.limits, lambda *_: None, lambda *_: None)
    stage.begin().way.take_all()
    for way in (quiet, stage.way):
        call(way)
        before = sys.getallocatedblocks()
        call(way)
        assert sys.getallocatedblocks() - before < 10
    assert stage.way.counts()[0] == 4000


# ---- who carries -------------------------------------------------------------


def test_small_calls_are_the_library_s() -> None:
    """Calls below the limits go to the MPI library, even before there is a stream."""
    stage = Stage(small_bytes=16)
    block, blocks = np.zeros(1), np.zeros(NRANKS)
    assert stage.way.allgather(COMM, block, blocks)
    assert stage.way.bcast(COMM, block, 0)
    assert stage.library == [("A", COMM, block, blocks), ("B", COMM, block, 0)]
    assert stage.limits.nsmall() == 2
    assert stage.way.counts() == (0, 0, 0, 0)


def test_carriers() -> None:
    """A class of sizes is carried as was said last; until then it is Python's."""
    stage = Stage().begin()
    block, blocks = np.zeros(1), np.zeros(NRANKS)
    assert not stage.way.allgather(COMM, block, blocks)
    stage.way.take(0, 4, LIBRARY, 0)  # 8 bytes have four bits
    assert stage.way.allgather(COMM, block, blocks)
    assert stage.library == [("A", COMM, block, blocks)]
    assert not stage.way.bcast(COMM, block, 0)
    assert not stage.way.allgather(COMM, np.zeros(2), np.zeros(2 * NRANKS))
    stage.way.take(0, 4, OURS, 0)
    assert stage.way.allgather(COMM, block, blocks)
    assert len(stage.started) == 1
    assert stage.way.counts()[::2] == (1, 1)
    stage.way.take(0, 4, UNKNOWN, 0)
    assert not stage.way.allgather(COMM, block, blocks)
    assert stage.way.run_allgather(COMM, block, blocks)
    assert stage.way.counts()[::2] == (1, 1)  # does not count what Python does


def test_looks() -> None:
    """The call of a given number is Python's; calls of both ways count."""
    stage = Stage().begin()
    block, blocks = np.zeros(1), np.zeros(NRANKS)
    for way in (OURS, LIBRARY):
        ncalls = stage.way.count_call(0, 4)
        stage.way.take(0, 4, way, ncalls + 4)
        assert stage.way.count_call(0, 4) == ncalls + 1
        assert stage.way.allgather(COMM, block, blocks)
        assert stage.way.allgather(COMM, block, blocks)
        for _ in range(2):
            assert not stage.way.allgather(COMM, block, blocks)
        assert stage.way.count_call(0, 4) == ncalls + 4
        assert stage.way.allgather(COMM, block, blocks)


def test_errors_of_the_library(stage: Stage) -> None:
    """What the MPI library raises reaches the program, and counts no call."""

    def fail(*_: object) -> None:
        raise ValueError("no")

    way = Express(stage.limits, fail, fail)
    stage.way = way
    stage.begin()
    way.take(1, 4, LIBRARY, 0)
    with pytest.raises(ValueError, match="no"):
        way.bcast(COMM, np.zeros(1), 0)
    assert way.counts() == (0, 0, 0, 0)


# ---- long operations, failures, and the end ----------------------------------


def test_long_operations_are_finished_by_python(stage: Stage) -> None:
    """What takes longer than a slice is waited for by Python, which frees it."""
    stage.status, stage.request = EAGAIN, 0x5000
    block, blocks = np.zeros(1), np.zeros(NRANKS)
    assert stage.way.allgather(COMM, block, blocks)
    assert stage.way.bcast(COMM, blocks, 3)
    assert stage.way.run_node_barrier()
    assert stage.finished == [
        (0x5000, "Allgather", block, blocks),
        (0x5000, "Bcast", blocks, 3),
        (0x5000, "node_barrier"),
    ]
    assert stage.started[-1].kind == NODE_BARRIER
    assert stage.ended == []


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_an_exception_gives_the_operation_up(
    stage: Stage, error: type[BaseException]
) -> None:
    """Ctrl-C before Python has taken care of a request ends it, and frees buffers."""
    stage.status, stage.request = EAGAIN, 0x5000

    def fail(*_: object) -> None:
        raise error

    stage.finish = fail
    blocks = bytearray(8 * NRANKS)
    with pytest.raises(error):
        stage.way.allgather(COMM, None, blocks)
    assert stage.ended == [("cancel", 0x5000), ("free", 0x5000)]
    blocks.append(0)
    assert stage.way.counts() == (0, 0, 0, 0)


def test_what_did_not_start_is_left_to_python(stage: Stage) -> None:
    """Python finds out why an operation does not start, and says it."""
    stage.status = -5
    assert not stage.way.allgather(COMM, None, np.zeros(NRANKS))
    assert stage.finished == stage.ended == []


def test_the_end(stage: Stage) -> None:
    """After the end all calls are Python's, and no way begins twice."""
    stage.way.end()
    assert not stage.way.allgather(COMM, None, np.zeros(NRANKS))
    assert not stage.way.run_bcast(COMM, np.zeros(1), 0)
    assert not stage.way.run_node_barrier()
    with pytest.raises(ValueError, match="begin"):
        stage.begin()


def test_suspension(stage: Stage) -> None:
    """Python hears once of each change between multicast and unicast."""
    blocks = np.zeros(NRANKS)
    for epoch in (0, 5, 5, 0, 0):
        stage.epoch = epoch
        stage.way.bcast(COMM, blocks, 0)
        assert stage.suspended == (epoch != 0)


# ---- memory that ranks share -------------------------------------------------


def test_keys(stage: Stage) -> None:
    """Python is asked once for an address, and again once its memories have changed."""
    blocks, other = np.zeros(NRANKS), np.zeros(NRANKS)

    def keys() -> list[int]:
        stage.started.clear()
        stage.asked.clear()
        for stage.key in (91, 92):
            stage.way.bcast(COMM, blocks, 0)
        return [each.shared for each in stage.started]

    assert (keys(), stage.asked) == ([0, 0], [])
    for _ in range(2):
        with shared(blocks):
            assert (keys(), stage.asked) == ([91, 91], [address_of(blocks)])
            assert (keys(), stage.asked) == ([91, 91], [])
            with shared(other):
                assert (keys(), stage.asked) == ([91, 91], [address_of(blocks)])
        assert (keys(), stage.asked) == ([0, 0], [])


def test_shared_results_are_always_ours(stage: Stage) -> None:
    """Their class of sizes does not matter; foreign memory is for Python to refuse."""
    blocks = np.zeros(NRANKS)
    stage.way.take(1, 6, LIBRARY, 1)
    stage.limits.set(1000, 1000)
    stage.key = 91
    with shared(blocks):
        assert stage.way.bcast(COMM, blocks, 0)
        assert stage.started[0].shared == 91
    stage.key = -1
    with shared(blocks):
        assert not stage.way.bcast(COMM, blocks, 0)
        assert not stage.way.bcast(COMM, blocks, 0)
    assert len(stage.started) == 1
    assert stage.library == []


def test_threads(stage: Stage) -> None:
    """Threads that call at once all get their own operations and keys."""
    own = [np.zeros((1 + each, NRANKS)) for each in range(4)]
    failures: list[BaseException] = []
    stage.find_key = lambda address: address  # type: ignore[method-assign]

    def work(blocks: np.ndarray[Any, Any]) -> None:
        try:
            for _ in range(200):
                assert stage.way.bcast(COMM, blocks, 0)
        except BaseException as error:  # noqa: BLE001 -- asserted below
            failures.append(error)

    threads = [threading.Thread(target=work, args=(each,)) for each in own]
    with shared(own[0]):
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    assert failures == []
    assert stage.way.counts()[0] == 800
    told = Counter((each.nbytes, each.recv, each.shared) for each in stage.started)
    places = ((each.nbytes, address_of(each)) for each in own)
    assert told == {(nbytes, place, place): 200 for nbytes, place in places}
