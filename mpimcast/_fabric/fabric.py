# SPDX-License-Identifier: BSD-3-Clause
"""A fabric: hosts, and the switches and links that join them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import networkx as nx
import numpy as np

from mpimcast._fabric.link_table import LinkTable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

    from mpimcast._fabric.link import Link


@dataclass(frozen=True)
class Host:
    """A place for one rank, with a link to a switch and one back.

    Parameters
    ----------
    switch
        The number of its switch.
    rack
        The number of its rack: the hosts that are close to each other.
    up, down
        The links to the switch and from it.
    """

    switch: int
    rack: int
    up: Link
    down: Link


class Fabric:
    """Hosts, and the switches and links that join them; it does not change.

    The hosts have the numbers from 0 on, the switches have numbers of their own from 0
    on. As vertices of one graph the hosts come first, so switch s is vertex
    ``nhosts + s``. A job's ranks are the first hosts.

    Parameters
    ----------
    graph
        The switches, numbered from 0, and the links between them: each edge has a
        `Link` as its attribute ``link``, and a twin in the other direction with the
        same key. A switch's attribute ``tier`` says what it is, such as "leaf"; those
        of tier "node" stand for what joins the ranks within a machine. The graph is
        frozen.
    hosts
        All hosts, in the order of their numbers.

    Raises
    ------
    ValueError
        If the switches are not numbered, some are not reached from others, or a link
        has no twin.
    """

    def __init__(self, graph: nx.MultiDiGraph, hosts: Sequence[Host]) -> None:
        self.graph = nx.freeze(graph)
        self.hosts = tuple(hosts)
        self.nhosts = len(self.hosts)
        self.nswitches = len(graph)
        if not self.hosts or sorted(graph) != list(range(self.nswitches)):
            raise ValueError("a fabric needs hosts, and switches numbered from 0")
        if not nx.is_strongly_connected(graph):
            raise ValueError("some switches of the fabric cannot reach others")
        for start, end, key in graph.edges(keys=True):
            if not graph.has_edge(end, start, key):
                raise ValueError(
                    f"link {key} from switch {start} to {end} has no twin back"
                )
        for number, host in enumerate(self.hosts):
            if host.switch not in graph:
                raise ValueError(f"host {number} is at {host.switch}, which is none")

    @cached_property
    def switches(self) -> NDArray[np.uint32]:
        """The number of each host's switch."""
        return np.array([host.switch for host in self.hosts], np.uint32)

    @cached_property
    def racks(self) -> NDArray[np.uint32]:
        """The number of each host's rack."""
        return np.array([host.rack for host in self.hosts], np.uint32)

    @cached_property
    def _edges(self) -> list[tuple[int, int, int]]:
        """The links between switches, in order: their ends, and their cable's key."""
        return sorted(self.graph.edges(keys=True))

    @cached_property
    def links(self) -> LinkTable:
        """All links, in order."""
        hosts = np.arange(self.nhosts, dtype=np.uint32)
        edges = self._edges
        numbers = {edge: 2 * self.nhosts + n for n, edge in enumerate(edges)}
        starts, ends = (
            np.array([edge[which] for edge in edges], np.uint32) + self.nhosts
            for which in (0, 1)
        )
        switches = self.switches + self.nhosts
        between = np.array([numbers[end, start, key] for start, end, key in edges])
        return LinkTable(
            [
                *(host.up for host in self.hosts),
                *(host.down for host in self.hosts),
                *(self.graph.edges[edge]["link"] for edge in edges),
            ],
            np.concatenate([hosts, switches, starts]).astype(np.uint32),
            np.concatenate([switches, hosts, ends]).astype(np.uint32),
            np.concatenate([hosts + self.nhosts, hosts, between]).astype(np.uint32),
        )

    def tier(self, switch: int) -> str:
        """Return what a switch is, such as "leaf"."""
        return str(self.graph.nodes[switch].get("tier", "switch"))

    def reordered(self, order: NDArray[np.intp]) -> Fabric:
        """Return this fabric with other numbers for its hosts.

        Parameters
        ----------
        order
            The hosts in their new order, each once.
        """
        return Fabric(self.graph, [self.hosts[host] for host in order])

    def changed(self, change: Callable[[int, int, Link], Link]) -> Fabric:
        """Return this fabric with other links in the place of its own.

        Parameters
        ----------
        change
            It is called with the vertices that a link leads from and to, and the link,
            and returns what is to take its place.
        """
        graph = nx.MultiDiGraph()
        graph.add_nodes_from(self.graph.nodes(data=True))
        for start, end, key, link in self.graph.edges(keys=True, data="link"):
            new = change(self.nhosts + start, self.nhosts + end, link)
            graph.add_edge(start, end, key, link=new)
        hosts = []
        for number, host in enumerate(self.hosts):
            switch = self.nhosts + host.switch
            up, down = (
                change(number, switch, host.up),
                change(switch, number, host.down),
            )
            hosts.append(replace(host, up=up, down=down))
        return Fabric(graph, hosts)

    def without(self, links: Iterable[int]) -> Fabric:
        """Return this fabric after cables between switches have failed.

        Parameters
        ----------
        links
            For each cable, the number of either of its links.

        Raises
        ------
        ValueError
            If a number is not that of a link between switches, or some switches cannot
            reach others any more.
        """
        edges, first = self._edges, 2 * self.nhosts
        graph = nx.MultiDiGraph(self.graph)
        for link in links:
            if not first <= link < first + len(edges):
                raise ValueError(
                    f"link {link}: the links between switches are "
                    + (f"{first} to {first + len(edges) - 1}" if edges else "none")
                )
            start, end, key = edges[link - first]
            graph.remove_edges_from([(start, end, key), (end, start, key)])
        return Fabric(graph, self.hosts)
