# SPDX-License-Identifier: BSD-3-Clause
"""Every Broadcast brings the whole block to each rank, and sends nothing too early."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from replay import gather, orderly, without_a_dependency

from mpimcast._peers import broadcast
from mpimcast._peers.schedule import Schedule

NBYTES = 1000
SIZES = [*range(1, 41), 97, 128]


def pipelined(nranks: int, nbytes: int, root: int = 0) -> Schedule:
    """Return a pipelined chain of four slices, the last of which is shorter."""
    return broadcast.pipelined_chain(nranks, nbytes, 300, root)


ALGORITHMS = [broadcast.linear, broadcast.binomial, pipelined]
Algorithm = Callable[[int, int, int], Schedule]


def initial(schedule: Schedule, nranks: int, root: int) -> np.ndarray:
    """Return which items each rank has at first: the root has all, the others none."""
    has = np.zeros((nranks, len(schedule.contents.sizes)), bool)
    has[root] = True
    return has


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_all_items(algorithm: Algorithm) -> None:
    """All ranks end with the block, and get no byte twice."""
    for nranks in SIZES:
        root = nranks * 2 // 3
        schedule = algorithm(nranks, NBYTES, root)
        assert gather(schedule, initial(schedule, nranks, root)).all()
        assert schedule.total_bytes == (nranks - 1) * NBYTES


def scattered(nranks: int) -> int:
    """Return how many items a binomial scatter sends: each as often as it hops."""
    return sum(rank.bit_count() for rank in range(nranks))


def test_scatter_allgather() -> None:
    """Each rank has its item after the scatter, and all items after the ring."""
    for nranks in SIZES:
        root = nranks - 1
        schedule = broadcast.scatter_allgather(nranks, 10 * nranks + 1, root)
        orderly(schedule)
        nscatter = nranks - 1
        ring = nranks * (nranks - 1)
        assert len(schedule.sender) == nscatter + ring
        _, items = schedule.contents.items()
        assert len(items) == scattered(nranks) + ring
        assert schedule.contents.sizes.sum() == 10 * nranks + 1
        # The ring brings items that a rank has already from the scatter.
        has = initial(schedule, nranks, root)
        assert gather(schedule, has, needless=True).all()


def test_scatter_of_too_little() -> None:
    """Each rank needs a byte to pass around."""
    with pytest.raises(ValueError, match="3 bytes cannot be scattered to 4 ranks"):
        broadcast.scatter_allgather(4, 3)


def test_the_tree_sends_far_first() -> None:
    """The root of a binomial tree sends to the middle first."""
    schedule = broadcast.binomial(8, 1)
    assert schedule.receiver[schedule.sender == 0].tolist() == [4, 2, 1]


def test_the_chain_is_pipelined() -> None:
    """A rank passes on a slice without waiting for the next."""
    schedule = broadcast.pipelined_chain(3, 700, 300)
    assert schedule.nbytes.tolist() == [300, 300, 300, 300, 100, 100]
    assert schedule.sender.tolist() == [0, 1] * 3
    before, after = schedule.dependencies
    assert (before.tolist(), after.tolist()) == ([0, 2, 4], [1, 3, 5])


@pytest.mark.parametrize(
    "algorithm", [broadcast.binomial, broadcast.scatter_allgather, pipelined]
)
def test_a_missing_dependency_is_noticed(algorithm: Algorithm) -> None:
    """No algorithm has the first of its dependencies in vain."""
    schedule = algorithm(12, NBYTES, 0)
    cut = without_a_dependency(schedule, 0)
    with pytest.raises(AssertionError, match="too early"):
        gather(cut, initial(schedule, 12, 0), needless=True)
