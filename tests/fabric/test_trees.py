# SPDX-License-Identifier: BSD-3-Clause
"""Multicast trees span all ranks of a group without circles."""

from __future__ import annotations

from collections import Counter

import networkx as nx
import numpy as np
import pytest
from fabrics import fabrics, groups, joined
from hypothesis import given, settings
from hypothesis import strategies as st

from mpimcast._fabric.clos import clos2, fat_tree, paper, single
from mpimcast._fabric.nodes import nodes
from mpimcast._fabric.rails import rails
from mpimcast._fabric.rendezvous import Rendezvous
from mpimcast._fabric.routes import Routes
from mpimcast._fabric.subnet_manager import SubnetManager
from mpimcast._fabric.tree import Tree


def check(tree: Tree, ranks: set[int], spare: set[int]) -> None:
    """Check that a tree spans its ranks, with no end but these and `spare`."""
    fabric = tree.fabric
    graph = joined(tree)
    assert nx.is_tree(graph)
    assert {vertex for vertex in graph if vertex < fabric.nhosts} == ranks
    ends = {vertex for vertex in graph if graph.degree(vertex) == 1}
    assert ends - spare <= ranks | {
        fabric.nhosts + int(fabric.switches[rank]) for rank in ranks
    }


@settings(deadline=None)
@given(st.data())
def test_trees_of_a_subnet_manager(data: st.DataObject) -> None:
    """Each subgroup has a tree of the needed switches only."""
    fabric = data.draw(fabrics())
    ranks = data.draw(groups(fabric))
    manager = SubnetManager(fabric, Routes(fabric))
    for tree in manager.trees(ranks, data.draw(st.integers(1, 5))):
        check(tree, ranks, set())


@settings(deadline=None)
@given(st.data())
def test_trees_of_a_rendezvous(data: st.DataObject) -> None:
    """The tree may have one useless end, the root that the group's hash has given."""
    fabric = data.draw(fabrics())
    ranks = data.draw(groups(fabric))
    rendezvous = Rendezvous(fabric, Routes(fabric))
    tree = rendezvous.tree(ranks, data.draw(st.integers(0, 2**32)))
    check(tree, ranks, {fabric.nhosts + tree.root})


def test_roots_are_central() -> None:
    """A tree has its root at a spine, or at the leaf if all ranks are there."""
    fabric = paper()
    manager = SubnetManager(fabric, Routes(fabric))
    roots = [tree.root for tree in manager.trees(range(188), 6)]
    assert sorted(roots) == list(range(12, 18))
    (tree,) = manager.trees(range(18))
    assert (tree.root, tree.ups) == (0, {})


def test_subgroups_use_all_cables() -> None:
    """18 subgroups use each of the 18 cables from a leaf up once."""
    fabric = paper()
    trees = SubnetManager(fabric, Routes(fabric)).trees(range(188), 18)
    used = Counter(up for tree in trees for up in tree.ups.values())
    assert len(used) == 11 * 18
    assert set(used.values()) == {1}


def test_few_subgroups_lie_far_apart() -> None:
    """Two subgroups of a fat tree share no link between switches."""
    fabric = fat_tree(4)
    first, second = SubnetManager(fabric, Routes(fabric)).trees(range(16), 2)
    assert not set(first.ups.values()) & set(second.ups.values())


def test_jobs_have_different_roots() -> None:
    """Two jobs with two subgroups each use all four core switches."""
    fabric = fat_tree(4)
    manager = SubnetManager(fabric, Routes(fabric))
    trees = [*manager.trees(range(16), 2), *manager.trees(range(16), 2)]
    assert len({tree.root for tree in trees}) == 4


def test_trees_stay_small() -> None:
    """A tree takes a rail that it has already, though another is less used."""
    fabric = rails(2, 2, 2, nspines=1)
    manager = SubnetManager(fabric, Routes(fabric))
    (few,) = manager.trees([0, 7])
    (all_ranks,) = manager.trees(range(8))
    first_node = int(fabric.hosts[0].switch)
    assert few.ups[first_node] != all_ranks.ups[first_node]
    assert len(all_ranks.switches) == 1 + 2 + 4


def test_a_group_enters_a_node_once() -> None:
    """The ranks of a node are reached over one of its rails; subgroups take turns."""
    fabric = rails(2, 4, 4)
    trees = SubnetManager(fabric, Routes(fabric)).trees(range(32), 4)
    node = 2 + 4  # after the two spines and the first pod's rail switches
    assert fabric.tier(node) == "node"
    rails_used = {tree.ups[node] for tree in trees}
    assert len(rails_used) == 4
    for tree in trees:
        assert len(joined(tree)) == 32 + 8 + 2 + 1


def test_rendezvous_roots_spread() -> None:
    """Groups have different roots, but none inside a node."""
    fabric = nodes(clos2(8), 2)
    rendezvous = Rendezvous(fabric, Routes(fabric))
    roots = {rendezvous.tree(range(64), group).root for group in range(200)}
    assert roots == {s for s in range(fabric.nswitches) if fabric.tier(s) != "node"}


@pytest.mark.parametrize("ranks", [[], [-1], [3]])
def test_wrong_ranks(ranks: list[int]) -> None:
    """A group has ranks, and they are hosts."""
    fabric = single(3)
    with pytest.raises(ValueError, match="of 0 to 2"):
        SubnetManager(fabric, Routes(fabric)).trees(ranks)


@settings(deadline=None)
@given(st.data())
def test_towards(data: st.DataObject) -> None:
    """Each switch is listed once, after those behind it, with its link to the goal."""
    fabric = data.draw(fabrics())
    routes = Routes(fabric)
    (tree,) = SubnetManager(fabric, routes).trees(data.draw(groups(fabric)))
    goal = data.draw(st.sampled_from(tree.switches))
    seen = set()
    for switch, link in tree.towards(goal):
        seen.add(switch)
        assert int(fabric.links.start[link]) - fabric.nhosts == switch
        assert routes.end(link) not in seen
        assert np.isin(link, tree.links)
    assert seen | {goal} == set(tree.switches)
