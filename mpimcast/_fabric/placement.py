# SPDX-License-Identifier: BSD-3-Clause
"""Placements: which host each rank of a job is on.

Each returns the fabric with its hosts in the order of ranks: a job of P ranks has the
first P hosts. The hosts of one node stay together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mpimcast._fabric.mixing import mix, mix64

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mpimcast._fabric.fabric import Fabric


def packed(fabric: Fabric) -> Fabric:
    """Return the fabric with ranks that fill rack after rack."""
    machines = _Machines(fabric)
    return machines.ordered(np.lexsort((machines.first, machines.racks)))


def shuffled(fabric: Fabric, seed: int) -> Fabric:
    """Return the fabric with ranks on random nodes, by a seed."""
    machines = _Machines(fabric)
    keys = np.arange(len(machines.first), dtype=np.uint64) ^ np.uint64(mix(seed))
    return machines.ordered(np.argsort(mix64(keys), kind="stable"))


def interleaved(fabric: Fabric) -> Fabric:
    """Return the fabric with ranks that go round the racks, node by node."""
    machines = _Machines(fabric)
    by_rack = np.lexsort((machines.first, machines.racks))
    racks = machines.racks[by_rack]
    starts = np.searchsorted(racks, racks)
    return machines.ordered(
        by_rack[np.lexsort((racks, np.arange(len(racks)) - starts))]
    )


class _Machines:
    """The nodes of a fabric, and each host that is not part of any.

    Parameters
    ----------
    fabric
        The fabric.
    """

    def __init__(self, fabric: Fabric) -> None:
        self._fabric = fabric
        found: dict[tuple[str, int], list[int]] = {}
        for number, host in enumerate(fabric.hosts):
            node = fabric.tier(host.switch) == "node"
            key = ("node", host.switch) if node else ("host", number)
            found.setdefault(key, []).append(number)
        self._hosts = list(found.values())
        self.first = np.array([hosts[0] for hosts in self._hosts])
        self.racks = fabric.racks[self.first]

    def ordered(self, order: NDArray[np.intp]) -> Fabric:
        """Return the fabric with all hosts in the order of their machines."""
        hosts = [self._hosts[machine] for machine in order]
        return self._fabric.reordered(np.concatenate(hosts))
