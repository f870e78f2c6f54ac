# SPDX-License-Identifier: BSD-3-Clause
"""The express way: what it hands to C for each call, and who carries which calls."""

from __future__ import annotations

import random
import sys
from array import array
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import support
from stage import (
    ALLGATHER,
    BCAST,
    COMM,
    IN_PLACE,
    LIBRARY,
    NRANKS,
    OURS,
    RANK,
    START,
    UNKNOWN,
    Stage,
    Started,
    address_of,
    shared,
)

from mpimcast._small import Express, Limits


@pytest.fixture
def stage() -> Stage:
    """Return an open express way on which mpimcast carries everything."""
    made = Stage().begin()
    made.way.take_all(OURS)
    return made


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
    stage.begin().way.take_all(OURS)
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
