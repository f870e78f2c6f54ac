# SPDX-License-Identifier: BSD-3-Clause
"""A fabric that is being built, switch by switch."""

from __future__ import annotations

from dataclasses import replace

import networkx as nx

from mpimcast._fabric.fabric import Fabric, Host
from mpimcast._fabric.link import Link

# The link that all others are like, unless the caller of a builder says otherwise.
LINK = Link("")

# Datagrams that wait for a host's own link wait in the host's memory: none is dropped.
_HOST_QUEUE_BYTES = 1 << 40


class Wiring:
    """A fabric that is being built."""

    def __init__(self) -> None:
        self.graph = nx.MultiDiGraph()
        self.hosts: list[Host] = []

    def switch(self, tier: str) -> int:
        """Add a switch of a tier, and return its number."""
        number = len(self.graph)
        self.graph.add_node(number, tier=tier)
        return number

    def join(self, start: int, end: int, up: Link, down: Link) -> None:
        """Join two switches by one more cable: `up` leads from `start` to `end`."""
        key = self.graph.number_of_edges(start, end)
        self.graph.add_edge(start, end, key, link=up)
        self.graph.add_edge(end, start, key, link=down)

    def raise_to(self, lower: int, upper: int, link: Link, tier: str = "leaf") -> None:
        """Join a switch of a tier to one above it, by links named after the tier."""
        up, down = (replace(link, name=f"{tier} {way}") for way in ("up", "down"))
        self.join(lower, upper, up, down)

    def host(self, switch: int, link: Link, rack: int, name: str = "host") -> None:
        """Add a host to a switch, by links whose names begin with `name`."""
        up = replace(link, name=f"{name} up", queue_bytes=_HOST_QUEUE_BYTES)
        self.hosts.append(Host(switch, rack, up, replace(link, name=f"{name} down")))

    def fabric(self) -> Fabric:
        """Return what has been built."""
        return Fabric(self.graph, self.hosts)


def counted(nhosts: int | None, most: int) -> int:
    """Return how many hosts a fabric gets: `nhosts`, or all that it has room for.

    Raises
    ------
    ValueError
        If it has no room for so many.
    """
    count = most if nhosts is None else nhosts
    if not 1 <= count <= most:
        raise ValueError(f"the fabric has room for 1 to {most} hosts, not for {count}")
    return count
