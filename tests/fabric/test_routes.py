# SPDX-License-Identifier: BSD-3-Clause
"""Routes are all shortest routes, and nothing else."""

from __future__ import annotations

from collections.abc import Callable

import networkx as nx
import numpy as np
import pytest
from fabrics import fabrics
from hypothesis import given, settings

from mpimcast._fabric.clos import clos3, fat_tree, paper
from mpimcast._fabric.dragonfly import dragonfly
from mpimcast._fabric.fabric import Fabric
from mpimcast._fabric.nodes import nodes
from mpimcast._fabric.rails import rails
from mpimcast._fabric.routes import Routes
from mpimcast._fabric.sites import two_sites


@settings(deadline=None)
@given(fabrics())
def test_shortest(fabric: Fabric) -> None:
    """A link is on a route exactly if what remains behind it is shorter by its cost."""
    routes = Routes(fabric)
    graph = fabric.graph
    truth = dict(
        nx.all_pairs_dijkstra_path_length(
            graph, weight=lambda _, __, keys: min(e["link"].cost for e in keys.values())
        )
    )
    edges = sorted(graph.edges(keys=True))
    for start in graph:
        for end in graph:
            assert routes.costs[start, end] == truth[start][end]
            expected = [
                2 * fabric.nhosts + number
                for number, edge in enumerate(edges)
                if edge[0] == start
                and start != end
                and truth[edge[1]][end] + graph.edges[edge]["link"].cost
                == truth[start][end]
            ]
            assert routes.towards(start, end).tolist() == expected


@pytest.mark.parametrize(
    "build",
    [
        lambda: fat_tree(6),
        lambda: clos3(8, 100, 3.0, 3.0),
        lambda: dragonfly(4, 2, 2),
        lambda: dragonfly(4, 2, 2, 24),
        lambda: rails(3, 4, 2),
        lambda: two_sites(nodes(paper(), 2), 10_000, 10**6),
        lambda: two_sites(dragonfly(3, 1, 1), 10_000, 10**6),
    ],
)
def test_each_link_comes_nearer(build: Callable[[], Fabric]) -> None:
    """The remaining links become fewer with each, whichever of the routes is taken.

    The simulator insists on that, as it knows no costs.
    """
    fabric = build()
    routes = Routes(fabric)
    for end in range(fabric.nswitches):
        far = {end: 0}
        nearest_first = np.argsort(routes.costs[:, end], kind="stable").tolist()
        assert nearest_first[0] == end
        for start in nearest_first[1:]:
            nexts = {routes.end(link) for link in routes.towards(start, end)}
            (remaining,) = {far[each] for each in nexts}
            far[start] = 1 + remaining


@pytest.mark.parametrize("nhosts", [72, 1, 24, 30])
def test_dragonfly_is_minimal(nhosts: int) -> None:
    """A route has at most one global link, and one local link at each of its ends."""
    fabric = dragonfly(4, 2, 2, nhosts)
    routes = Routes(fabric)
    group = [switch // 4 for switch in range(fabric.nswitches)]
    for start in range(fabric.nswitches):
        for end in range(fabric.nswitches):
            if start != end:
                cost = routes.costs[start, end]
                assert cost <= 5 if group[start] != group[end] else cost == 1


def test_equal_routes_of_a_fat_tree() -> None:
    """A leaf has k / 2 links towards a leaf of another pod, a core switch one."""
    fabric = fat_tree(6)
    routes = Routes(fabric)
    tiers = [fabric.tier(switch) for switch in range(fabric.nswitches)]
    leaves = [switch for switch, tier in enumerate(tiers) if tier == "leaf"]
    cores = [switch for switch, tier in enumerate(tiers) if tier == "core"]
    assert (len(leaves), len(cores)) == (18, 9)
    assert all(len(routes.towards(leaves[0], leaf)) == 3 for leaf in leaves[1:])
    assert all(
        len(routes.towards(core, leaf)) == 1 for core in cores for leaf in leaves
    )


def test_a_failed_cable() -> None:
    """Without a cable the routes take the others; the last one cannot fail."""
    fabric = clos3(4, 6)
    first, nlinks = 2 * fabric.nhosts, len(fabric.links.links)
    leaf = int(fabric.links.start[first]) - fabric.nhosts
    spine = int(fabric.links.end[first]) - fabric.nhosts
    for link in (first, int(fabric.links.twin[first])):
        after = fabric.without([link])
        assert len(after.links.links) == nlinks - 2
        found = [Routes(each).towards(leaf, 1) for each in (fabric, after)]
        assert len(found[0]) - 1 == len(found[1]) == 1
    both = [
        int(link)
        for link in np.flatnonzero(fabric.links.start == leaf + fabric.nhosts)
        if link >= first
    ]
    assert spine + fabric.nhosts in fabric.links.end[both]
    with pytest.raises(ValueError, match="cannot reach"):
        fabric.without(both)
    for link in (0, first - 1, nlinks):
        with pytest.raises(ValueError, match=f"link {link}: .* are {first} to"):
            fabric.without([link])


@pytest.mark.timeout(60)
def test_4096_hosts() -> None:
    """The routes of a fat tree of 4096 hosts fit into memory, all of them shortest."""
    fabric = fat_tree(26, 4096)
    routes = Routes(fabric)
    assert fabric.nhosts == 4096
    assert set(routes.costs.ravel().tolist()) == {0, 1, 2, 3, 4}
    assert int(routes.first[-1]) == len(routes.links)
