# SPDX-License-Identifier: BSD-3-Clause
"""The express way: long operations, failures and the end, shared memory, threads."""

from __future__ import annotations

import threading
from collections import Counter
from typing import Any

import numpy as np
import pytest
from stage import (
    COMM,
    EAGAIN,
    LIBRARY,
    NODE_BARRIER,
    NRANKS,
    OURS,
    Stage,
    address_of,
    shared,
)


@pytest.fixture
def stage() -> Stage:
    """Return an open express way on which mpimcast carries everything."""
    made = Stage().begin()
    made.way.take_all(OURS)
    return made


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
