# SPDX-License-Identifier: BSD-3-Clause
"""Multicast trees as InfiniBand's subnet manager builds them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mpimcast._fabric.tree import Tree, climb, group_ranks

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from mpimcast._fabric.fabric import Fabric
    from mpimcast._fabric.routes import Routes
    from mpimcast._fabric.tree import Ups


class SubnetManager:
    """Builds one shared tree a group, as it sees the whole fabric.

    A tree's root is one of the switches whose farthest rank is nearest. Among equally
    short links a tree takes one to a switch that it has already, then the one that the
    fewest trees have.

    Parameters
    ----------
    fabric, routes
        The fabric and its routes.
    """

    def __init__(self, fabric: Fabric, routes: Routes) -> None:
        self._fabric = fabric
        self._routes = routes
        self._ngroups = 0
        self._ntrees = np.zeros(len(fabric.links.links), np.int64)

    def trees(self, ranks: Iterable[int], nsubgroups: int = 1) -> list[Tree]:
        """Return the trees of the subgroups of a job, with different roots if possible.

        Parameters
        ----------
        ranks
            The hosts that are in each of the groups.
        nsubgroups
            How many groups the job has.
        """
        members, switches = group_ranks(self._fabric, ranks)
        farthest = self._routes.costs[switches].max(axis=0)
        roots = np.flatnonzero(farthest == farthest.min())
        # Roots beside each other often share links, so a few are taken far apart.
        step = max(1, len(roots) // nsubgroups)
        trees = []
        for _ in range(nsubgroups):
            turn = self._ngroups * step
            root = int(roots[(turn + turn // len(roots)) % len(roots)])
            trees.append(self._tree(root, members, switches))
            self._ngroups += 1
        return trees

    def _tree(
        self, root: int, members: NDArray[np.uint32], switches: list[int]
    ) -> Tree:
        """Return the tree of one more group, without a root that joins nothing."""
        ups: Ups = {}
        climb(self._routes, (root, ups), switches, self._choose)
        while root not in switches:
            below = [
                switch for switch, up in ups.items() if self._routes.end(up) == root
            ]
            if len(below) > 1:
                break
            (root,) = below
            del ups[root]
        for up in ups.values():
            self._ntrees[up] += 1
        return Tree(self._fabric, root, ups, members, members)

    def _choose(self, switch: int, links: NDArray[np.uint32], ups: Ups) -> int:
        """Choose a link to a switch of the tree, or of the fewest trees."""
        del switch
        new = np.array([self._routes.end(int(link)) not in ups for link in links])
        return int(links[np.lexsort((links, self._ntrees[links], new))[0]])
