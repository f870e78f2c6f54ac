# SPDX-License-Identifier: BSD-3-Clause
"""The shortest routes between all switches of a fabric."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mpimcast._fabric.fabric import Fabric

# How many destinations are relaxed at a time, which bounds the memory.
_DESTINATIONS = 256

# More than any route costs, and small enough that adding a link's cost is exact.
_FAR = 2**30


class Routes:
    """For each two switches, the links at the first that begin a shortest route.

    Parameters
    ----------
    fabric
        The fabric.

    Attributes
    ----------
    fabric
        The fabric.
    costs
        The cost of the shortest route from each switch to each, of shape
        (nswitches, nswitches).
    first, links
        The links from switch s towards switch d are
        ``links[first[s * nswitches + d] : first[s * nswitches + d + 1]]``.
    """

    def __init__(self, fabric: Fabric) -> None:
        self.fabric = fabric
        self._nswitches = fabric.nswitches
        table, nhosts = fabric.links, fabric.nhosts
        self._nbefore = 2 * nhosts
        self._starts = table.start[2 * nhosts :].astype(np.intp) - nhosts
        self._ends = table.end[2 * nhosts :].astype(np.intp) - nhosts
        self._weights = np.array(
            [link.cost for link in table.links[2 * nhosts :]], np.int32
        )
        self.costs = self._relaxed()
        self.first, self.links = self._shortest()

    def towards(self, start: int, end: int) -> NDArray[np.uint32]:
        """Return the links at one switch that begin a shortest route to another."""
        row = start * self._nswitches + end
        return self.links[self.first[row] : self.first[row + 1]]

    def end(self, link: int) -> int:
        """Return the number of the switch to which a link between switches leads."""
        return int(self._ends[link - self._nbefore])

    def _relaxed(self) -> NDArray[np.int32]:
        """Return the costs of all routes, by Bellman and Ford's algorithm."""
        costs = np.full((self._nswitches, self._nswitches), _FAR, np.int32)
        np.fill_diagonal(costs, 0)
        if self._nswitches == 1:
            return costs
        rows = np.searchsorted(self._starts, np.arange(self._nswitches))
        for low in range(0, self._nswitches, _DESTINATIONS):
            part = costs[:, low : low + _DESTINATIONS]
            while True:
                over = part[self._ends] + self._weights[:, None]
                better = np.minimum(part, np.minimum.reduceat(over, rows, axis=0))
                if np.array_equal(better, part):
                    break
                part[:] = better
        return costs

    def _shortest(self) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
        """Return `first` and `links`."""
        bounds = np.searchsorted(self._starts, np.arange(self._nswitches + 1))
        counts, links = [], []
        for switch in range(self._nswitches):
            own = slice(bounds[switch], bounds[switch + 1])
            over = self.costs[self._ends[own]] + self._weights[own, None]
            shortest = over == self.costs[switch]
            counts.append(shortest.sum(axis=0))
            links.append(np.nonzero(shortest.T)[1] + bounds[switch] + self._nbefore)
        first = np.concatenate([[0], np.cumsum(np.concatenate(counts))])
        return first.astype(np.uint32), np.concatenate(links).astype(np.uint32)
