# SPDX-License-Identifier: BSD-3-Clause
"""A network has room for so many groups; the next is refused or flooded."""

from __future__ import annotations

from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from fabrics import fabrics, flood, groups, joined
from hypothesis import given, settings
from hypothesis import strategies as st

from mpimcast._fabric import traffic
from mpimcast._fabric.clos import clos2, single
from mpimcast._fabric.group_table import SUBNET, GroupTable, Limits, NoRoomError
from mpimcast._fabric.nodes import nodes
from mpimcast._fabric.rendezvous import Rendezvous
from mpimcast._fabric.routes import Routes
from mpimcast._fabric.subnet_manager import SubnetManager

SNOOPING = Limits(groups=None, queue_pairs=None, entries=2, floods=True)


def test_groups_of_a_subnet() -> None:
    """A subnet has 16,383 groups, shared by all jobs."""
    fabric = single(4)
    routes = Routes(fabric)
    table = GroupTable(fabric, routes, SUBNET)
    trees = SubnetManager(fabric, routes).trees(range(4), 4)
    assert table.jobs(trees) == 16_383 // 4
    for _ in range(16_383):
        table.add(trees[0])
    assert table.jobs(trees) == 0
    with pytest.raises(NoRoomError, match="16383 groups"):
        table.add(trees[0])
    assert table.ngroups == 16_383


def test_queue_pairs_of_an_adapter() -> None:
    """The ranks behind one adapter share what it attaches to a group."""
    fabric = nodes(single(2), 8)
    routes = Routes(fabric)
    table = GroupTable(fabric, routes, SUBNET)
    (tree,) = SubnetManager(fabric, routes).trees(range(16))
    assert table.add(tree, 30) is tree
    with pytest.raises(NoRoomError, match="240 queue pairs to a group, not 248"):
        table.add(tree, 31)


def test_an_adapter_of_its_own() -> None:
    """A rank that shares its adapter with no other may attach 240 queue pairs."""
    fabric = single(2)
    routes = Routes(fabric)
    table = GroupTable(fabric, routes, SUBNET)
    (tree,) = SubnetManager(fabric, routes).trees(range(2))
    assert table.add(tree, 240) is tree
    with pytest.raises(NoRoomError, match="not 241"):
        table.add(tree, 241)


def test_full_switches_refuse() -> None:
    """Where switches do not flood, a group needs an entry in each of its switches."""
    fabric = clos2(4, 8)
    routes = Routes(fabric)
    table = GroupTable(fabric, routes, replace(SUBNET, entries=2))
    everywhere, first_leaf = (
        SubnetManager(fabric, routes).trees(ranks)[0] for ranks in (range(8), range(2))
    )
    assert table.jobs([everywhere]) == 2
    assert table.jobs([everywhere, first_leaf]) == 1
    table.add(everywhere)
    table.add(first_leaf)
    assert table.jobs([everywhere]) == 0
    with pytest.raises(NoRoomError, match=r"switches \[0\] have tables for 2"):
        table.add(everywhere)
    assert table.jobs([everywhere, first_leaf]) == 0
    (last_leaf,) = SubnetManager(fabric, routes).trees(range(6, 8))
    assert table.add(last_leaf) is last_leaf


def test_full_switches_flood() -> None:
    """The third group of a leaf with two entries reaches all of its hosts."""
    fabric = clos2(4, 8)
    routes = Routes(fabric)
    table = GroupTable(fabric, routes, SNOOPING)
    (tree,) = SubnetManager(fabric, routes).trees([0, 7])
    assert table.jobs([tree]) == 2
    assert table.add(tree) is tree
    assert table.add(tree) is tree
    sent = np.zeros(8, np.uint64)
    sent[0] = 1
    assert traffic.multicast(tree, sent).sum() == 4
    for _ in range(3):
        flooded = table.add(tree)
        assert flooded.ranks.tolist() == [0, 7]
        assert flooded.reached.tolist() == [0, 1, 6, 7]
        # The two leaves also send to a neighbour each, the first to the other spine,
        # and the spine sends to the other two leaves.
        assert traffic.multicast(flooded, sent).sum() == 4 + 2 + 1 + 2
    assert table.jobs([tree]) == 0


@settings(deadline=None)
@given(st.data())
def test_floods_go_nowhere_twice(data: st.DataObject) -> None:
    """A flooded group is a tree still, reaches all its ranks, and costs more."""
    fabric = data.draw(fabrics())
    routes = Routes(fabric)
    table = GroupTable(fabric, routes, SNOOPING)
    rendezvous = Rendezvous(fabric, routes)
    for group in range(6):
        ranks = data.draw(groups(fabric))
        tree = rendezvous.tree(ranks, group)
        real = table.add(tree)
        assert nx.is_tree(joined(real))
        assert set(tree.links.tolist()) <= set(real.links.tolist())
        sender = min(ranks)
        crossed = flood(real, sender)
        assert ranks - {sender} <= {int(fabric.links.end[link]) for link in crossed}
        sent = np.zeros(fabric.nhosts, np.uint64)
        sent[sender] = 1
        assert traffic.multicast(real, sent).sum() == len(crossed)
