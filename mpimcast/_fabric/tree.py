# SPDX-License-Identifier: BSD-3-Clause
"""The tree of links by which a multicast group is reached."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import NDArray

    from mpimcast._fabric.fabric import Fabric
    from mpimcast._fabric.routes import Routes

# For each switch of a tree but its root, the link towards the root.
Ups = dict[int, int]

if TYPE_CHECKING:
    # Chooses one of several links of a switch. It is called with the switch, the links,
    # and what has been chosen so far.
    Choose = Callable[[int, NDArray[np.uint32], Ups], int]


@dataclass(frozen=True, eq=False)
class Tree:
    """A tree of switches and hosts, which all senders of a group share.

    A switch sends on what comes over one of its links over all its others.

    Parameters
    ----------
    fabric
        The fabric.
    root
        The number of the switch from which the tree has been built.
    ups
        For each other switch of the tree, the link towards the root.
    ranks
        The hosts that are in the group, in ascending order.
    reached
        The hosts that the tree reaches, in ascending order: those in the group, and
        others if it is flooded.
    """

    fabric: Fabric
    root: int
    ups: Ups
    ranks: NDArray[np.uint32]
    reached: NDArray[np.uint32]

    @property
    def switches(self) -> list[int]:
        """The numbers of all switches of the tree, in ascending order."""
        return sorted({self.root, *self.ups})

    @cached_property
    def links(self) -> NDArray[np.uint32]:
        """The links that lead from switches, both of each cable, in ascending order."""
        ups = np.array(sorted(self.ups.values()), np.uint32)
        downs = self.fabric.links.twin[ups]
        hosts = self.reached + np.uint32(self.fabric.nhosts)
        return np.sort(np.concatenate([hosts, ups, downs]))

    def towards(self, switch: int) -> list[tuple[int, int]]:
        """Return every other switch of the tree and its link towards one of them.

        The farther of two switches comes first.
        """
        table, nhosts = self.fabric.links, self.fabric.nhosts
        near: dict[int, list[int]] = {each: [] for each in self.switches}
        for up in sorted(self.ups.values()):
            down = int(table.twin[up])
            near[int(table.start[up]) - nhosts].append(down)
            near[int(table.start[down]) - nhosts].append(up)
        found, seen = [(switch, -1)], {switch}
        for nearer, _ in found:
            for link in near[nearer]:
                farther = int(table.start[link]) - nhosts
                if farther not in seen:
                    seen.add(farther)
                    found.append((farther, link))
        return found[:0:-1]


def climb(
    routes: Routes, tree: tuple[int, Ups], switches: Iterable[int], choose: Choose
) -> None:
    """Add the shortest routes from switches to a tree's root, up to where they meet it.

    Parameters
    ----------
    routes
        The routes of the fabric.
    tree
        The root, and what the tree consists of, to which is added.
    switches
        Where to begin.
    choose
        Chooses among links that are equally short.
    """
    root, ups = tree
    for start in switches:
        switch = start
        while switch != root and switch not in ups:
            link = choose(switch, routes.towards(switch, root), ups)
            ups[switch] = link
            switch = routes.end(link)


def group_ranks(
    fabric: Fabric, ranks: Iterable[int]
) -> tuple[NDArray[np.uint32], list[int]]:
    """Return the ranks of a group in ascending order, and the switches of their hosts.

    Raises
    ------
    ValueError
        If there are none, or one is no host of the fabric.
    """
    members = np.unique(np.array(list(ranks), np.int64))
    if not members.size or members[0] < 0 or members[-1] >= fabric.nhosts:
        raise ValueError(f"a group's ranks are of 0 to {fabric.nhosts - 1}, at least 1")
    return members.astype(np.uint32), np.unique(fabric.switches[members]).tolist()
