# SPDX-License-Identifier: BSD-3-Clause
"""Bytes on each link of a fabric, counted along routes and trees."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mpimcast._fabric.mixing import flow_hashes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mpimcast._fabric.fabric import Fabric
    from mpimcast._fabric.routes import Routes
    from mpimcast._fabric.tree import Tree


def unicast(
    routes: Routes,
    senders: NDArray[np.uint32],
    receivers: NDArray[np.uint32],
    nbytes: NDArray[np.uint64],
    seed: int = 0,
) -> NDArray[np.uint64]:
    """Return the bytes that messages put on each link, of shape (nlinks,).

    At each switch the hash of a message's two ends chooses among the shortest links.

    Parameters
    ----------
    routes
        The routes of the fabric.
    senders, receivers
        The vertices at the ends of each message, hosts or switches.
    nbytes
        The bytes of each message.
    seed
        The seed of the hash.
    """
    fabric, table = routes.fabric, routes.fabric.links
    flows, which = np.unique(
        senders.astype(np.uint64) << np.uint64(32) | receivers.astype(np.uint64),
        return_inverse=True,
    )
    amounts = np.zeros(len(flows), np.uint64)
    np.add.at(amounts, which, nbytes)
    starts = (flows >> np.uint64(32)).astype(np.uint32)
    ends = flows.astype(np.uint32)
    totals = np.zeros(len(table.links), np.uint64)
    at = _switches(fabric, starts)
    goals = _switches(fabric, ends)
    from_host, to_host = starts < fabric.nhosts, ends < fabric.nhosts
    np.add.at(totals, starts[from_host], amounts[from_host])
    np.add.at(totals, ends[to_host] + fabric.nhosts, amounts[to_host])
    going = np.flatnonzero(at != goals)
    while going.size:
        row = at[going] * fabric.nswitches + goals[going]
        first = routes.first[row].astype(np.uint64)
        vertices = (at[going] + fabric.nhosts).astype(np.uint32)
        hashes = flow_hashes(starts[going], ends[going], vertices, seed)
        links = routes.links[first + hashes % (routes.first[row + 1] - first)]
        np.add.at(totals, links, amounts[going])
        at[going] = table.end[links].astype(np.intp) - fabric.nhosts
        going = going[at[going] != goals[going]]
    return totals


def _switches(fabric: Fabric, vertices: NDArray[np.uint32]) -> NDArray[np.intp]:
    """Return the switch of each vertex that is a host, and each vertex's own else."""
    own = np.arange(fabric.nswitches)
    return np.concatenate([fabric.switches, own])[vertices].astype(np.intp)


def multicast(tree: Tree, sent: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the bytes that multicasts to a group put on each link, of shape (nlinks,).

    Parameters
    ----------
    tree
        The tree of the group.
    sent
        How many bytes each host multicasts, of shape (nhosts,).

    Raises
    ------
    ValueError
        If a host multicasts that is at no switch of the tree.
    """
    fabric, table = tree.fabric, tree.fabric.links
    below = np.zeros(fabric.nswitches, np.uint64)
    np.add.at(below, fabric.switches, sent)
    outside = np.setdiff1d(np.flatnonzero(below), tree.switches)
    if outside.size:
        raise ValueError(f"hosts at switches {outside.tolist()} are not in the tree")
    total = sent.sum()
    totals = np.zeros(len(table.links), np.uint64)
    totals[: fabric.nhosts] = sent
    totals[fabric.nhosts + tree.reached] = total - sent[tree.reached]
    for switch, up in tree.towards(tree.root):
        totals[up] = below[switch]
        totals[table.twin[up]] = total - below[switch]
        below[int(table.end[up]) - fabric.nhosts] += below[switch]
    return totals
