# SPDX-License-Identifier: BSD-3-Clause
"""Finds the fewest nodes whose removal leaves no bad pair: a smallest vertex cover."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    Graph = dict[str, set[str]]

# The most branches that are searched. A network's faults are stars, which take few.
_BUDGET = 20_000


def smallest_cover(pairs: Iterable[tuple[str, str]]) -> set[str]:
    """Return few nodes such that every pair has one of them.

    Their number is the least possible, unless the pairs are so many and so tangled
    that the search gives up. Among equally good nodes, take those with more pairs; of
    a lone pair, take the second node.
    """
    graph: Graph = defaultdict(set)
    alone = set()
    for one, other in pairs:
        if one == other:
            alone.add(one)
        graph[one].add(other)
        graph[other].add(one)
    rest = _without(graph, alone)
    return alone | _Search(rest).best


class _Search:
    """Branch and bound: either a node is removed, or all of its neighbours are."""

    def __init__(self, graph: Graph) -> None:
        self.best = _greedy(graph)
        self._left = _BUDGET
        self._look(graph, set())

    def _look(self, graph: Graph, taken: set[str]) -> None:
        self._left -= 1
        if not graph:
            if len(taken) < len(self.best):
                self.best = taken
            return
        node = _busiest(graph)
        # Each removed node ends at most as many pairs as the busiest node has.
        npairs = sum(map(len, graph.values())) / 2
        least = len(taken) + -(-npairs // len(graph[node]))
        if self._left <= 0 or least >= len(self.best):
            return
        self._look(_without(graph, {node}), taken | {node})
        self._look(_without(graph, graph[node]), taken | graph[node])


def _busiest(graph: Mapping[str, set[str]]) -> str:
    return max(reversed(list(graph)), key=lambda node: len(graph[node]))


def _greedy(graph: Graph) -> set[str]:
    taken = set()
    while graph:
        node = _busiest(graph)
        taken.add(node)
        graph = _without(graph, {node})
    return taken


def _without(graph: Mapping[str, set[str]], nodes: set[str]) -> Graph:
    """Return the graph without some nodes, and without nodes that have no pair left."""
    rest = {node: others - nodes for node, others in graph.items() if node not in nodes}
    return {node: others for node, others in rest.items() if others}
