# SPDX-License-Identifier: BSD-3-Clause
"""Rail-optimised pods: nodes of several ranks, with an adapter for each rail."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpimcast._fabric.nodes import NODE_LINK
from mpimcast._fabric.wiring import LINK, Wiring

if TYPE_CHECKING:
    from mpimcast._fabric.fabric import Fabric
    from mpimcast._fabric.link import Link


def rails(
    npods: int,
    nnodes: int,
    nrails: int,
    *,
    nspines: int | None = None,
    link: Link = LINK,
    node_link: Link = NODE_LINK,
) -> Fabric:
    """Return pods whose nodes have a device at each of the pod's rail switches.

    A node has as many ranks as rails, which an internal switch joins to all its
    devices. Rail switches have as many cables to spines as nodes, dealt to the spines
    in turn. A rack is a pod.

    Parameters
    ----------
    npods, nnodes, nrails
        The numbers of pods, of nodes in each, and of rails.
    nspines
        The number of spines, which join the pods. By default half as many as a pod has
        nodes. One pod alone has none.
    link, node_link
        What links between and within nodes are like. The classes are "host" for those
        of devices, "node" for ranks, "leaf" for rail switches, each "up" and "down".

    Raises
    ------
    ValueError
        If there is no such fabric.
    """
    if nspines is None:
        nspines = max(1, nnodes // 2)
    numbers = (npods, nnodes, nrails, nspines)
    if min(numbers) < 1 or nspines > nnodes:
        raise ValueError(f"no pods have {numbers} pods, nodes, rails and spines")
    wiring = Wiring()
    spines = [wiring.switch("spine") for _ in range(nspines if npods > 1 else 0)]
    for pod in range(npods):
        switches = [wiring.switch("rail") for _ in range(nrails)]
        for switch in switches:
            for number in range(nnodes if spines else 0):
                wiring.raise_to(switch, spines[number % nspines], link)
        for _ in range(nnodes):
            node = wiring.switch("node")
            for switch in switches:
                wiring.raise_to(node, switch, link, "host")
                wiring.host(node, node_link, pod, "node")
    return wiring.fabric()
