# SPDX-License-Identifier: BSD-3-Clause
"""The express way of real communicators: one crossing, the same results and errors."""

from __future__ import annotations

import random
from array import array
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import support
from gathering import require_two_ranks
from mpi4py import MPI

from mpimcast import Intracomm

Make = Callable[..., Intracomm]


class Ordinary:
    """Counts the calls that do not take the express way."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.ncalls = 0
        carry = Intracomm._carry  # noqa: SLF001 -- the beginning of the ordinary way

        def counted(*arguments: Any) -> None:
            self.ncalls += 1
            carry(*arguments)

        monkeypatch.setattr(Intracomm, "_carry", counted)

    def take(self) -> int:
        """Return how many there were since the last time."""
        ncalls, self.ncalls = self.ncalls, 0
        return ncalls


@pytest.fixture
def ordinary(monkeypatch: pytest.MonkeyPatch) -> Ordinary:
    """Return the count of calls on the ordinary way."""
    return Ordinary(monkeypatch)


@pytest.fixture(params=["", "shm"])
def comm(make_comm: Make, request: pytest.FixtureRequest) -> Intracomm:
    """Return an open communicator, in shared memory or as the other tests have it."""
    made = make_comm(**({"transport": request.param} if request.param else {}))
    require_two_ranks(made)
    made.Allgather(np.zeros(1), np.zeros(made.size))
    return made


PLAIN: tuple[Callable[[np.ndarray], Any], ...] = (
    lambda numbers: numbers,
    bytearray,
    lambda numbers: array("d", numbers),
    memoryview,
)


@pytest.mark.parametrize("make", PLAIN)
@pytest.mark.parametrize("count", [1, 1000, 100_000])
def test_one_crossing(
    comm: Intracomm, ordinary: Ordinary, make: Callable[[np.ndarray], Any], count: int
) -> None:
    """Calls of plain buffers cross once, and have the right results."""
    ordinary.take()
    blocks = np.arange(comm.size * count) + 0.5
    own = blocks.reshape(comm.size, -1)[comm.rank]
    for in_place in (False, True):
        result = make(np.zeros(comm.size * count))
        if in_place:
            np.frombuffer(result).reshape(comm.size, -1)[comm.rank] = own
        comm.Allgather(MPI.IN_PLACE if in_place else make(own.copy()), result)
        assert np.array_equal(np.frombuffer(result), blocks)
    for root in range(comm.size):
        result = make(blocks if comm.rank == root else np.zeros_like(blocks))
        comm.Bcast(result, root)
        assert np.array_equal(np.frombuffer(result), blocks)
    assert ordinary.take() == 0
    assert comm.stats()["calls_ours"] >= 2 + comm.size


def test_changes(make_comm: Make, comm: Intracomm, ordinary: Ordinary) -> None:
    """Whatever changes between calls, each has its own result, on either way."""
    random_ = random.Random(support.choose_seed())
    comms = [comm, make_comm()]
    comms[1].Allgather(np.zeros(1), np.zeros(comm.size))
    ordinary.take()
    results = [np.zeros((comm.size, 40)) for _ in range(2)]
    nplain = nothers = 0
    for step in range(200):
        which, count = random_.choice(results), random_.choice([1, 8, 40])
        words = which.reshape(-1)[: count * comm.size].view(
            random_.choice(["f8", "i8", "u4", "i2"])
        )
        words[:] = 0
        expected = np.arange(len(words)) % 113 + step % 91
        in_place, root = random_.choice([True, False]), random_.randrange(comm.size)
        plain = random_.random() < 0.8
        message = words if plain else [words, len(words)]
        nplain, nothers = nplain + plain, nothers + (not plain)
        if step % 3 == 0:
            if comm.rank == root:
                words[:] = expected
            random_.choice(comms).Bcast(message, root)
        else:
            own = words.reshape(comm.size, -1)[comm.rank]
            mine = expected.reshape(comm.size, -1)[comm.rank].astype(words.dtype)
            if in_place:
                own[:] = mine
            message = words if plain else [words, len(own)]
            random_.choice(comms).Allgather(MPI.IN_PLACE if in_place else mine, message)
        assert np.array_equal(words, expected), (step, words.dtype, count)
    assert ordinary.take() == nothers
    assert nplain > 0 < nothers


def test_errors(comm: Intracomm) -> None:
    """Wrong arguments raise what the ordinary way raises, before any communication."""
    size = comm.size
    wrong: list[tuple[str, tuple[Any, ...]]] = [
        ("Allgather", (np.zeros(2), np.zeros(size))),
        ("Allgather", (np.zeros(1), np.zeros(size + 1))),
        ("Allgather", (np.zeros(1), bytes(8 * size))),
        ("Allgather", (np.zeros(1), np.zeros(4 * size)[::4])),
        ("Allgather", (np.zeros(1), None)),
        ("Allgather", (np.zeros(1, object), np.zeros(size))),
        ("Bcast", (np.zeros(1), size)),
        ("Bcast", (np.zeros(1), -1)),
        ("Bcast", (np.zeros(1), "root")),
        ("Bcast", (np.zeros(1, "M8[s]"), 0)),
        ("Bcast", (np.frombuffer(bytes(8)), (comm.rank + 1) % size)),
    ]
    before = comm.stats()["calls_ours"]
    for name, arguments in wrong:
        method = getattr(comm, name)
        said = []
        for way in (method, _ordinarily(comm, name)):
            with pytest.raises(Exception) as caught:  # noqa: PT011 -- compared below
                way(*arguments)
            said.append((type(caught.value), str(caught.value)))
        assert said[0] == said[1], (name, arguments)
    assert comm.stats()["calls_ours"] == before
    comm.Allgather(np.ones(1), result := np.zeros(size))
    assert (result == 1).all()


def _ordinarily(comm: Intracomm, name: str) -> Callable[..., None]:
    """Return what runs a collective on the ordinary way."""
    from mpimcast._session import collectives

    kind, library = getattr(collectives, name), getattr(MPI.Intracomm, name)
    return lambda *given: comm._carry(kind, library, *given)  # noqa: SLF001
