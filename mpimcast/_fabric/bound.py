# SPDX-License-Identifier: BSD-3-Clause
"""The least time of a collective, by what must pass the links of ranks and nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mpimcast._fabric.fabric import Fabric


def bound_ns(fabric: Fabric, sent: NDArray[np.uint64], sum_bytes: int = 0) -> int:
    """Return the time in which all ranks can have received what all others send.

    Each rank has to receive it over its link, and the ranks of a node over the links to
    the node. For an Allgather of blocks of N bytes by P ranks on hosts of their own,
    with links of rate B, that is N (P - 1) / B.

    Parameters
    ----------
    fabric
        The fabric; the ranks are its first hosts.
    sent
        The bytes that each rank sends to all others, of shape (nranks,).
    sum_bytes
        The bytes that each rank is to receive besides, from a Reduce-Scatter.
    """
    total = int(sent.sum())
    hosts = fabric.hosts[: len(sent)]
    times = [
        _passing_ns(total - int(own) + sum_bytes, host.down.mbits)
        for host, own in zip(hosts, sent, strict=True)
    ]
    switches = fabric.switches[: len(sent)]
    for switch in np.unique(switches):
        if fabric.tier(int(switch)) == "node":
            ranks = switches == switch
            more = int(ranks.sum()) * sum_bytes
            needed = total - int(sent[ranks].sum()) + more
            links = fabric.graph.in_edges(int(switch), data="link")
            times.append(_passing_ns(needed, sum(link.mbits for *_, link in links)))
    return max(times)


def _passing_ns(nbytes: int, mbits: int) -> int:
    """Return the time that bytes take at a rate, rounded up."""
    return -(-nbytes * 8000 // mbits)
