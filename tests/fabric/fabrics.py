# SPDX-License-Identifier: BSD-3-Clause
"""Random fabrics for tests, and slow ways to follow their routes and trees."""

from __future__ import annotations

from collections import Counter

import networkx as nx
import numpy as np
from hypothesis import strategies as st

from mpimcast._fabric.fabric import Fabric, Host
from mpimcast._fabric.link import Link
from mpimcast._fabric.routes import Routes
from mpimcast._fabric.tree import Tree

CHEAP, DEAR = Link("cheap"), Link("dear", cost=3)


@st.composite
def fabrics(draw: st.DrawFn) -> Fabric:
    """Return a connected fabric of up to 8 switches, with parallel cables."""
    nswitches = draw(st.integers(1, 8))
    pairs = [(draw(st.integers(0, end - 1)), end) for end in range(1, nswitches)]
    switch = st.integers(0, nswitches - 1)
    more = draw(st.lists(st.tuples(switch, switch), max_size=8))
    pairs += [(start, end) for start, end in more if start != end]
    graph = nx.MultiDiGraph()
    graph.add_nodes_from(range(nswitches))
    for start, end in pairs:
        link = draw(st.sampled_from((CHEAP, DEAR)))
        key = graph.number_of_edges(start, end)
        graph.add_edge(start, end, key, link=link)
        graph.add_edge(end, start, key, link=link)
    where = draw(st.lists(switch, min_size=1, max_size=10))
    up, down = Link("host up"), Link("host down")
    return Fabric(graph, [Host(switch, switch, up, down) for switch in where])


def groups(fabric: Fabric) -> st.SearchStrategy[set[int]]:
    """Return a strategy for the ranks of a group."""
    return st.sets(st.integers(0, fabric.nhosts - 1), min_size=1)


def joined(tree: Tree) -> nx.Graph:
    """Return the graph of a tree's cables, without any of the classes' own methods.

    Fail if a cable is not listed once at each of its ends that is a switch.
    """
    fabric, table = tree.fabric, tree.fabric.links
    listed = Counter(
        frozenset((int(link), int(table.twin[link]))) for link in tree.links
    )
    graph = nx.MultiGraph()
    for cable, count in listed.items():
        link = min(cable)
        ends = int(table.start[link]), int(table.end[link])
        assert count == sum(end >= fabric.nhosts for end in ends)
        graph.add_edge(*ends)
    return graph


def flood(tree: Tree, sender: int) -> Counter[int]:
    """Return how often a datagram from a host crosses each link, going step by step."""
    fabric, table = tree.fabric, tree.fabric.links
    at: dict[int, list[int]] = {}
    for link in tree.links:
        at.setdefault(int(table.start[link]), []).append(int(link))
    crossed: Counter[int] = Counter()
    waiting = [sender]
    while waiting:
        link = waiting.pop()
        crossed[link] += 1
        assert crossed[link] == 1, "the datagram goes round"
        vertex = int(table.end[link])
        waiting += [out for out in at.get(vertex, ()) if out != table.twin[link]]
    assert all(table.end[link] != sender for link in crossed), fabric.nhosts
    return crossed


def flow_hash(sender: int, receiver: int, vertex: int, seed: int) -> int:
    """Return the hash of a flow at a switch, in plain integers."""
    mask = 2**64 - 1
    value = seed ^ (sender << 32 | receiver) ^ (vertex * 0x9E3779B97F4A7C15 & mask)
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 & mask
    value = (value ^ value >> 27) * 0x94D049BB133111EB & mask
    return value ^ value >> 31


def follow(routes: Routes, sender: int, receiver: int, seed: int) -> list[int]:
    """Return the links that a message takes from one vertex to another, in order."""
    fabric, table = routes.fabric, routes.fabric.links
    nhosts = fabric.nhosts
    taken = [sender] if sender < nhosts else []
    vertex = int(table.end[sender]) if sender < nhosts else sender
    goal = int(table.end[receiver]) if receiver < nhosts else receiver
    while vertex != goal:
        links = routes.towards(vertex - nhosts, goal - nhosts)
        chosen = flow_hash(sender, receiver, vertex, seed) % len(links)
        taken.append(int(links[chosen]))
        vertex = int(table.end[taken[-1]])
    return taken + ([nhosts + receiver] if receiver < nhosts else [])


def totals(fabric: Fabric, counts: Counter[int]) -> list[int]:
    """Return the count of each link of a fabric."""
    return [counts[link] for link in range(len(fabric.links.links))]


def balance(fabric: Fabric, nbytes: np.ndarray) -> np.ndarray:
    """Return what comes into each vertex, less what leaves it."""
    sums = np.zeros(fabric.nhosts + fabric.nswitches, np.int64)
    np.add.at(sums, fabric.links.end, nbytes.astype(np.int64))
    np.subtract.at(sums, fabric.links.start, nbytes.astype(np.int64))
    return sums
