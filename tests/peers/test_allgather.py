# SPDX-License-Identifier: BSD-3-Clause
"""Every Allgather brings each block to each rank once, and sends none too early."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, log2

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from replay import gather, without_a_dependency

from mpimcast._peers import allgather
from mpimcast._peers.neighbour import neighbour_exchange
from mpimcast._peers.recursive import k_nomial, recursive_doubling
from mpimcast._peers.schedule import Schedule
from mpimcast._peers.two_level import two_level

NBYTES = 1000
SIZES = [*range(1, 41), 53, 64, 81]


def k_nomial_4(nranks: int, nbytes: int) -> Schedule:
    """Return a 4-nomial exchange."""
    return k_nomial(nranks, nbytes, 4)


def pat_3(nranks: int, nbytes: int) -> Schedule:
    """Return parallel aggregated trees whose messages have up to three blocks."""
    return allgather.pat(nranks, nbytes, aggregated=3)


def nodes_of_4(nranks: int, nbytes: int) -> Schedule:
    """Return two levels of four ranks a node."""
    return two_level([rank // 4 for rank in range(nranks)], nbytes)


def interleaved(nranks: int, nbytes: int) -> Schedule:
    """Return two levels of three groups, to which ranks belong in turn."""
    return two_level([rank % 3 for rank in range(nranks)], nbytes)


ALGORITHMS = [
    allgather.ring,
    allgather.linear,
    allgather.bruck,
    allgather.pat,
    pat_3,
    recursive_doubling,
    k_nomial_4,
    neighbour_exchange,
    nodes_of_4,
    interleaved,
]
Algorithm = Callable[[int, int], Schedule]


def check(schedule: Schedule, nranks: int) -> None:
    """Check that all ranks end with all blocks, at the least number of bytes."""
    assert gather(schedule, np.eye(nranks, dtype=bool)).all()
    assert schedule.total_bytes == nranks * (nranks - 1) * NBYTES


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_all_blocks(algorithm: Algorithm) -> None:
    """All ranks end with all blocks, whatever their number."""
    for nranks in SIZES:
        if algorithm is neighbour_exchange and nranks % 2:
            with pytest.raises(ValueError, match=f"if {nranks} ranks"):
                algorithm(nranks, NBYTES)
        else:
            check(algorithm(nranks, NBYTES), nranks)


@settings(deadline=None)
@given(st.integers(1, 30), st.integers(2, 9))
def test_any_radix(nranks: int, radix: int) -> None:
    """A k-nomial exchange is right for each k."""
    check(k_nomial(nranks, NBYTES, radix), nranks)


@settings(deadline=None)
@given(st.integers(1, 40), st.integers(1, 12))
def test_any_aggregation(nranks: int, aggregated: int) -> None:
    """The messages of parallel trees have as many blocks as are allowed."""
    schedule = allgather.pat(nranks, NBYTES, aggregated)
    check(schedule, nranks)
    assert schedule.nbytes.max(initial=0) <= aggregated * NBYTES


@settings(deadline=None)
@given(st.lists(st.integers(0, 6), min_size=1, max_size=25))
def test_any_groups(groups: list[int]) -> None:
    """Two levels are right for groups of any sizes, in any order."""
    check(two_level(groups, NBYTES), len(groups))


def test_between_groups() -> None:
    """Each block crosses to each other group once, and other messages stay inside."""
    schedule = two_level([0, 0, 0, 1, 1, 2], 1)
    groups = np.array([0, 0, 0, 1, 1, 2])
    crosses = groups[schedule.sender] != groups[schedule.receiver]
    assert schedule.nbytes[crosses].sum() == 6 * (3 - 1)


@pytest.mark.parametrize("nranks", [2, 7, 16, 33])
def test_numbers_of_messages(nranks: int) -> None:
    """Logarithmic algorithms have as many messages a rank as their papers say."""
    steps = ceil(log2(nranks))
    assert len(allgather.bruck(nranks, 1).sender) == nranks * steps
    assert len(allgather.ring(nranks, 1).sender) == nranks * (nranks - 1)
    pat = allgather.pat(nranks, 1)
    assert len(pat.sender) == nranks * steps
    ahead = (pat.receiver.astype(int) - pat.sender) % nranks
    nearest = pat.nbytes[ahead == 1]
    assert set(nearest.tolist()) == {nranks // 2}


def test_recursive_doubling_of_a_power_of_two() -> None:
    """Each rank exchanges with one of each distance; the blocks double."""
    schedule = recursive_doubling(8, 1)
    assert (schedule.sender ^ schedule.receiver).tolist() == [1] * 8 + [2] * 8 + [4] * 8
    assert schedule.nbytes.tolist() == [1] * 8 + [2] * 8 + [4] * 8


@pytest.mark.parametrize(
    "algorithm", [each for each in ALGORITHMS if each is not allgather.linear]
)
def test_a_missing_dependency_is_noticed(algorithm: Algorithm) -> None:
    """No algorithm has the last of its dependencies in vain."""
    schedule = algorithm(12, NBYTES)
    cut = without_a_dependency(schedule, len(schedule.next) - 1)
    with pytest.raises(AssertionError, match="too early"):
        gather(cut, np.eye(12, dtype=bool))


@pytest.mark.timeout(60)
def test_a_million_messages() -> None:
    """The ring of 1024 ranks has 1,047,552 messages."""
    schedule = allgather.ring(1024, 1 << 20)
    assert len(schedule.sender) == 1_047_552
    assert len(schedule.next) == 1_047_552 - 1024
    assert schedule.total_bytes == 1_047_552 << 20
    step, rank = np.divmod(np.arange(1_047_552), 1024)
    _, items = schedule.contents.items()
    assert (items == (rank - step) % 1024).all()
    before, after = schedule.dependencies
    assert (after // 1024 == before // 1024 + 1).all()
    assert (schedule.receiver[before] == schedule.sender[after]).all()


@pytest.mark.parametrize(
    "build",
    [
        lambda: allgather.ring(0, 1),
        lambda: allgather.bruck(2, 0),
        lambda: allgather.pat(2, 1, 0),
        lambda: k_nomial(4, 1, 1),
        lambda: two_level([], 1),
    ],
)
def test_impossible(build: Callable[[], Schedule]) -> None:
    """What sends nothing is refused."""
    with pytest.raises(ValueError, match=r"nothing|cannot carry"):
        build()


def test_schedules_beside_each_other() -> None:
    """Messages of two schedules keep their order, and wait for their own alone."""
    one, other = allgather.ring(3, 10), allgather.linear(4, 7)
    both = one.beside(other)
    n = len(one.sender)
    assert both.sender.tolist() == [*one.sender, *other.sender]
    assert both.receiver.tolist() == [*one.receiver, *other.receiver]
    assert both.total_bytes == one.total_bytes + other.total_bytes
    before, after = both.dependencies
    assert before.tolist() == [*one.dependencies[0], *(other.dependencies[0] + n)]
    assert after.tolist() == [*one.dependencies[1], *(other.dependencies[1] + n)]
