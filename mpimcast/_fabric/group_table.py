# SPDX-License-Identifier: BSD-3-Clause
"""The group tables of a network: how many multicast groups it has room for."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from mpimcast._fabric.tree import climb

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from mpimcast._fabric.fabric import Fabric
    from mpimcast._fabric.routes import Routes
    from mpimcast._fabric.tree import Tree, Ups


@dataclass(frozen=True)
class Limits:
    """How many groups there may be.

    Parameters
    ----------
    groups
        In the whole network, or None for any number.
    queue_pairs
        Of each group on an adapter: how many queue pairs, or sockets, may be attached.
    entries
        In the table of a switch, or None for any number.
    floods
        What becomes of a group for which a switch has no entry left: the switch floods
        it to all its ports (an Ethernet switch that snoops IGMP, RFC 4541), or the
        group is refused (a subnet manager).
    """

    groups: int | None
    queue_pairs: int | None
    entries: int | None
    floods: bool


# The multicast LIDs 0xC000 to 0xFFFE of an InfiniBand subnet, and the queue pairs that
# NVIDIA's adapters attach to a group (max_mcast_qp_attach).
SUBNET = Limits(groups=16_383, queue_pairs=240, entries=None, floods=False)


class NoRoomError(Exception):
    """A group for which the network has no room."""


class GroupTable:
    """The groups that a network has at present.

    Parameters
    ----------
    fabric, routes
        The network and its routes.
    limits
        How many groups there may be.
    """

    def __init__(self, fabric: Fabric, routes: Routes, limits: Limits) -> None:
        self._fabric = fabric
        self._routes = routes
        self._limits = limits
        self.ngroups = 0
        self._used: Counter[int] = Counter()

    def add(self, tree: Tree, queue_pairs: int = 1) -> Tree:
        """Add a group, and return the tree by which its datagrams really go.

        Parameters
        ----------
        tree
            The tree that the group would have without limits.
        queue_pairs
            How many queue pairs each of its ranks attaches.

        Raises
        ------
        NoRoomError
            If the network refuses the group. The text says which limit it has met.
        """
        limits = self._limits
        if limits.groups is not None and self.ngroups >= limits.groups:
            raise NoRoomError(f"the network has {limits.groups} groups, and no more")
        attached = self._ranks_per_adapter(tree) * queue_pairs
        if limits.queue_pairs is not None and attached > limits.queue_pairs:
            raise NoRoomError(
                f"an adapter attaches {limits.queue_pairs} queue pairs to a group, "
                f"not {attached}"
            )
        full = [switch for switch in self._tables(tree) if self._room(switch) == 0]
        if full and not limits.floods:
            raise NoRoomError(
                f"switches {full} have tables for {limits.entries} groups, and no more"
            )
        self.ngroups += 1
        self._used.update(set(self._tables(tree)) - set(full))
        return self._flooded(tree, full) if full else tree

    def jobs(self, trees: Sequence[Tree]) -> int | None:
        """Return how many more jobs with such groups have room; None for any number.

        That is without flooding, and with all trees being like these.
        """
        bounds = []
        if self._limits.groups is not None:
            bounds.append((self._limits.groups - self.ngroups) // len(trees))
        if self._limits.entries is not None:
            needs = Counter(switch for tree in trees for switch in self._tables(tree))
            bounds += [self._room(switch) // need for switch, need in needs.items()]
        return min(bounds, default=None)

    def _room(self, switch: int) -> int:
        """Return how many entries a switch has left; -1 for any number."""
        entries = self._limits.entries
        return -1 if entries is None else entries - self._used[switch]

    def _tables(self, tree: Tree) -> list[int]:
        """Return the switches that have an entry for a group, which nodes need not."""
        return [
            switch for switch in tree.switches if self._fabric.tier(switch) != "node"
        ]

    def _ranks_per_adapter(self, tree: Tree) -> int:
        """Return how many of a group's ranks share one adapter, at most."""
        counts = Counter(self._fabric.switches[tree.ranks].tolist())
        nodes = [counts[each] for each in counts if self._fabric.tier(each) == "node"]
        return max(nodes, default=1)

    def _flooded(self, tree: Tree, full: list[int]) -> Tree:
        """Return a tree in which some switches send to all their ports.

        These are the ports to hosts, and those of a spanning tree of the whole network,
        so that no datagram comes twice. Where a datagram arrives that no rank wants, it
        is dropped.
        """

        def choose(switch: int, links: NDArray[np.uint32], ups: Ups) -> int:
            del switch, ups
            return int(links[0])

        spanning = dict(tree.ups)
        everywhere = range(self._fabric.nswitches)
        climb(self._routes, (tree.root, spanning), everywhere, choose)
        ups = {
            switch: up
            for switch, up in spanning.items()
            if switch in tree.ups or {switch, self._routes.end(up)} & set(full)
        }
        hosts = np.flatnonzero(np.isin(self._fabric.switches, full))
        reached = np.union1d(tree.reached, hosts).astype(np.uint32)
        return replace(tree, ups=ups, reached=reached)
