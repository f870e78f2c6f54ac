# SPDX-License-Identifier: BSD-3-Clause
"""Multicast trees as IGMP and bidirectional PIM build them on Ethernet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpimcast._fabric.mixing import mix
from mpimcast._fabric.tree import Tree, climb, group_ranks

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from mpimcast._fabric.fabric import Fabric
    from mpimcast._fabric.routes import Routes
    from mpimcast._fabric.tree import Ups


class Rendezvous:
    """Builds one shared tree a group, whose root is given by a hash of the group.

    Each switch joins towards the root by itself, over one of its shortest links, which
    it chooses by a hash of the group and its own number. The root is in the tree even
    where no rank needs it, as all senders' datagrams go there (RFC 5015).

    Parameters
    ----------
    fabric, routes
        The fabric and its routes.
    candidates
        The numbers of the switches that may be roots; by default all but those within
        nodes.
    """

    def __init__(
        self, fabric: Fabric, routes: Routes, candidates: Sequence[int] | None = None
    ) -> None:
        self._fabric = fabric
        self._routes = routes
        self._candidates = candidates or [
            switch
            for switch in range(fabric.nswitches)
            if fabric.tier(switch) != "node"
        ]

    def tree(self, ranks: Iterable[int], group: int) -> Tree:
        """Return the tree of a group.

        Parameters
        ----------
        ranks
            The hosts that are in the group.
        group
            The group's number, such as its address.
        """
        members, switches = group_ranks(self._fabric, ranks)
        root = self._candidates[mix(group) % len(self._candidates)]

        def choose(switch: int, links: NDArray[np.uint32], ups: Ups) -> int:
            del ups
            return int(links[mix(mix(group) ^ switch) % len(links)])

        ups: Ups = {}
        climb(self._routes, (root, ups), switches, choose)
        return Tree(self._fabric, root, ups, members, members)
