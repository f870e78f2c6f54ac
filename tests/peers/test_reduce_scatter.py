# SPDX-License-Identifier: BSD-3-Clause
"""Every Reduce-Scatter adds each contribution to each block once."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest
from fabrics import fabrics, groups
from hypothesis import given, settings
from hypothesis import strategies as st
from replay import reduce, without_a_dependency

from mpimcast._fabric import traffic
from mpimcast._fabric.clos import paper
from mpimcast._fabric.rendezvous import Rendezvous
from mpimcast._fabric.routes import Routes
from mpimcast._fabric.subnet_manager import SubnetManager
from mpimcast._peers import reduce_scatter
from mpimcast._peers.schedule import Schedule

NBYTES = 1000
SIZES = [*range(1, 41), 61, 64]

Algorithm = Callable[[int, int], Schedule]
ALGORITHMS = [reduce_scatter.ring, reduce_scatter.recursive_halving]


def replayed(schedule: Schedule, owners: list[int], ranks: list[int]) -> None:
    """Replay with messages received in the order of sending, in reverse, at random."""
    random = Random(len(owners))
    reduce(schedule, owners, ranks, lambda messages: messages.pop(0))
    reduce(schedule, owners, ranks, lambda messages: messages.pop())
    reduce(
        schedule,
        owners,
        ranks,
        lambda messages: messages.pop(random.randrange(len(messages))),
    )


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_all_contributions(algorithm: Algorithm) -> None:
    """Each block is complete at its owner, whatever the number of ranks."""
    for nranks in SIZES:
        schedule = algorithm(nranks, NBYTES)
        everyone = list(range(nranks))
        replayed(schedule, everyone, everyone)
        assert schedule.total_bytes == nranks * (nranks - 1) * NBYTES


def test_halving() -> None:
    """A power of two exchanges with the farthest first, half of the blocks."""
    schedule = reduce_scatter.recursive_halving(8, 1)
    assert (schedule.sender ^ schedule.receiver).tolist() == [4] * 8 + [2] * 8 + [1] * 8
    assert schedule.nbytes.tolist() == [4] * 8 + [2] * 8 + [1] * 8


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_missing_dependency_is_noticed(algorithm: Algorithm) -> None:
    """No algorithm has the last of its dependencies in vain."""
    schedule = algorithm(12, NBYTES)
    cut = without_a_dependency(schedule, len(schedule.next) - 1)
    everyone = list(range(12))
    with pytest.raises(AssertionError, match=r"not complete|nothing|twice"):
        replayed(cut, everyone, everyone)


@settings(deadline=None)
@given(st.data())
def test_reduced_in_switches(data: st.DataObject) -> None:
    """Switches add up all contributions, over trees with and without a useless end."""
    fabric = data.draw(fabrics())
    routes = Routes(fabric)
    ranks = sorted(data.draw(groups(fabric)))
    trees = SubnetManager(fabric, routes).trees(ranks, 2)
    trees.append(Rendezvous(fabric, routes).tree(ranks, data.draw(st.integers(0, 9))))
    schedule = reduce_scatter.reduced_in_switches(trees, 100, 40)
    owners = [rank for rank in ranks for _ in range(3)]
    replayed(schedule, owners, ranks)
    for sender, receiver in zip(schedule.sender, schedule.receiver, strict=True):
        own = fabric.links.end[fabric.links.start == sender]
        assert receiver in own, "the message takes more than one link"


def test_bytes_on_the_paper_s_fabric() -> None:
    """A block takes 199 links to its owner, as many as by multicast away from it."""
    fabric = paper()
    routes = Routes(fabric)
    trees = SubnetManager(fabric, routes).trees(range(188), 6)
    schedule = reduce_scatter.reduced_in_switches(trees, 1000, 1000)
    assert schedule.total_bytes == 188 * 199 * 1000
    spines = {188 + 12 + spine for spine in range(6)}
    assert spines <= set(schedule.sender.tolist()), "the blocks use all trees"
    table = fabric.links
    totals = traffic.unicast(
        routes, schedule.sender, schedule.receiver, schedule.nbytes
    )
    assert totals.sum() == schedule.total_bytes
    assert table.by_class(totals) == {
        "host down": 188 * 1000,
        "host up": 188 * 187 * 1000,
        "leaf down": 188 * 1000,
        "leaf up": 188 * 10 * 1000,
    }
    assert set(totals[:188].tolist()) == {187_000}


def test_different_ranks() -> None:
    """All trees of a Reduce-Scatter have the same ranks."""
    fabric = paper()
    manager = SubnetManager(fabric, Routes(fabric))
    trees = [*manager.trees(range(5)), *manager.trees(range(6))]
    with pytest.raises(ValueError, match="different ranks"):
        reduce_scatter.reduced_in_switches(trees, 1, 1)


def test_slices_are_sent_in_turn() -> None:
    """All first slices come before all second ones; a switch waits for no next one."""
    fabric = paper(2)
    (tree,) = SubnetManager(fabric, Routes(fabric)).trees(range(2))
    schedule = reduce_scatter.reduced_in_switches([tree], 70, 30)
    assert schedule.sender.tolist() == [1, 2, 0, 2] * 3
    assert schedule.receiver.tolist() == [2, 0, 2, 1] * 3
    assert schedule.nbytes.tolist() == [30] * 8 + [10] * 4
    before, after = schedule.dependencies
    assert (after - before).tolist() == [1] * 6
    assert schedule.contents.first.tolist() == [0, 0, 3, 3, 1, 1, 4, 4, 2, 2, 5, 5]
