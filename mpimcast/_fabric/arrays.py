# SPDX-License-Identifier: BSD-3-Clause
"""A fabric, its routes and trees as the arrays that the simulator takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from mpimcast._fabric.routes import Routes
    from mpimcast._fabric.tree import Tree


@dataclass(frozen=True, eq=False)
class Arrays:
    """A fabric in numbers. Vertices are the hosts, then the switches.

    Link h is host h's link to its switch, and ``nhosts + h`` the one back.

    Parameters
    ----------
    nhosts, nswitches
        The numbers of vertices; ranks are the first hosts.
    link_from, link_to
        The vertices of each link.
    link_mbits, link_latency_ns, link_jitter_ns, link_queue_bytes, link_burst_bytes,
    link_burst_mbits, link_loss_ppb, link_loss_period
        The fields of each `Link`.
    link_class
        The index of its class in `classes`.
    classes
        The names of the classes.
    route_first, route_links
        The links from switch s towards switch d are
        ``route_links[route_first[s * nswitches + d] : ...[s * nswitches + d + 1]]``.
    tree_first, tree_links
        The links of switch s in tree t, towards hosts and switches alike, are
        ``tree_links[tree_first[t * nswitches + s] : ...[t * nswitches + s + 1]]``.
    """

    nhosts: int
    nswitches: int
    link_from: NDArray[np.uint32]
    link_to: NDArray[np.uint32]
    link_mbits: NDArray[np.uint32]
    link_latency_ns: NDArray[np.uint32]
    link_jitter_ns: NDArray[np.uint32]
    link_queue_bytes: NDArray[np.uint64]
    link_burst_bytes: NDArray[np.uint64]
    link_burst_mbits: NDArray[np.uint32]
    link_loss_ppb: NDArray[np.uint32]
    link_loss_period: NDArray[np.uint32]
    link_class: NDArray[np.uint32]
    classes: list[str]
    route_first: NDArray[np.uint32]
    route_links: NDArray[np.uint32]
    tree_first: NDArray[np.uint32]
    tree_links: NDArray[np.uint32]


def arrays(routes: Routes, trees: Sequence[Tree]) -> Arrays:
    """Return the arrays of a fabric, in the order of its hosts.

    Parameters
    ----------
    routes
        The routes, which know their fabric.
    trees
        The trees of all multicast groups, on the same fabric.
    """
    fabric, table = routes.fabric, routes.fabric.links
    counts = np.zeros((len(trees), fabric.nswitches), np.uint32)
    links = []
    for number, tree in enumerate(trees):
        switches = table.start[tree.links] - np.uint32(fabric.nhosts)
        links.append(tree.links[np.argsort(switches, kind="stable")])
        counts[number] = np.bincount(switches, minlength=fabric.nswitches)
    return Arrays(
        fabric.nhosts,
        fabric.nswitches,
        table.start,
        table.end,
        table.numbers("mbits", np.uint32),
        table.numbers("latency_ns", np.uint32),
        table.numbers("jitter_ns", np.uint32),
        table.numbers("queue_bytes", np.uint64),
        table.numbers("burst_bytes", np.uint64),
        table.numbers("burst_mbits", np.uint32),
        table.numbers("loss_ppb", np.uint32),
        table.numbers("loss_period", np.uint32),
        table.class_numbers(),
        table.classes,
        routes.first,
        routes.links,
        np.concatenate([[0], np.cumsum(counts)]).astype(np.uint32),
        np.concatenate([np.zeros(0, np.uint32), *links]).astype(np.uint32),
    )
