# SPDX-License-Identifier: BSD-3-Clause
"""Two data centres with a long link between them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import networkx as nx

from mpimcast._fabric.wiring import LINK, Wiring

if TYPE_CHECKING:
    from mpimcast._fabric.fabric import Fabric
    from mpimcast._fabric.link import Link

# No route within a site is to go through its border, which leads only to the other.
_BORDER_COST = 100


def two_sites(site: Fabric, mbits: int, latency_ns: int, link: Link = LINK) -> Fabric:
    """Return two copies of a fabric, joined by one long link.

    Each site has a border switch, which is joined to all switches that are farthest
    from hosts, such as its spines. The hosts of the first site come first.

    Parameters
    ----------
    site
        The fabric of one site.
    mbits, latency_ns
        The rate of the long link, of class "long", and its latency.
    link
        What the long link, and the links "border up" and "border down" to it, are like
        otherwise.
    """
    wiring = Wiring()
    far = replace(
        link, name="long", mbits=mbits, latency_ns=latency_ns, cost=_BORDER_COST
    )
    borders = [_add_site(wiring, site, link) for _ in range(2)]
    wiring.join(borders[0], borders[1], far, far)
    return wiring.fabric()


def _add_site(wiring: Wiring, site: Fabric, link: Link) -> int:
    """Add a copy of a site, and return the number of its border switch."""
    first = len(wiring.graph)
    first_rack = 1 + max((host.rack for host in wiring.hosts), default=-1)
    names = {switch: first + switch for switch in site.graph}
    wiring.graph.update(nx.relabel_nodes(nx.MultiDiGraph(site.graph), names))
    border = wiring.switch("border")
    for switch in _top(site):
        near = replace(link, cost=_BORDER_COST)
        wiring.raise_to(first + switch, border, near, "border")
    wiring.hosts += [
        replace(host, switch=first + host.switch, rack=first_rack + host.rack)
        for host in site.hosts
    ]
    return border


def _top(site: Fabric) -> list[int]:
    """Return the switches that are most links away from the nearest host."""
    starts = {host.switch for host in site.hosts}
    levels = nx.multi_source_dijkstra_path_length(site.graph, starts, weight=None)
    highest = max(levels.values())
    return sorted(switch for switch, level in levels.items() if level == highest)
