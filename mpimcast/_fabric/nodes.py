# SPDX-License-Identifier: BSD-3-Clause
"""Several ranks behind each network adapter of a fabric."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import networkx as nx

from mpimcast._fabric.link import Link
from mpimcast._fabric.wiring import Wiring

if TYPE_CHECKING:
    from mpimcast._fabric.fabric import Fabric

# Within a machine: 100 GB/s, as memory or a link between accelerators has it.
NODE_LINK = Link("", mbits=800_000, latency_ns=100, queue_bytes=1 << 30)


def nodes(fabric: Fabric, ranks_per_node: int, node_link: Link = NODE_LINK) -> Fabric:
    """Return a fabric with several ranks in the place of each host.

    An internal switch of tier "node" joins the ranks of a node; its links to the rest
    of the fabric are the old host's. The ranks of a node have consecutive numbers.

    Parameters
    ----------
    fabric
        The fabric, whose hosts become nodes.
    ranks_per_node
        How many ranks each has.
    node_link
        What the links within a node are like, but for their classes: "node up" and
        "node down".

    Raises
    ------
    ValueError
        If there are no ranks.
    """
    if ranks_per_node < 1:
        raise ValueError(f"a node cannot have {ranks_per_node} ranks")
    wiring = Wiring()
    wiring.graph = nx.MultiDiGraph(fabric.graph)
    for host in fabric.hosts:
        node = wiring.switch("node")
        up = replace(host.up, queue_bytes=host.down.queue_bytes)
        wiring.join(node, host.switch, up, host.down)
        for _ in range(ranks_per_node):
            wiring.host(node, node_link, host.rack, "node")
    return wiring.fabric()
