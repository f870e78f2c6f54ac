# SPDX-License-Identifier: BSD-3-Clause
"""Reduce-Scatters: ring, recursive halving, and reduced in switches.

Messages carry sums of what their senders and others have contributed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from mpimcast._peers import allgather
from mpimcast._peers.contents import Contents, blocks, slices
from mpimcast._peers.recursive import recursive_doubling
from mpimcast._peers.schedule import joined, scheduled

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from mpimcast._fabric.tree import Tree
    from mpimcast._peers.schedule import Schedule


def ring(nranks: int, nbytes: int) -> Schedule:
    """Return the ring, which is the reverse of the Allgather's."""
    return allgather.ring(nranks, nbytes).reversed()


def recursive_halving(nranks: int, nbytes: int) -> Schedule:
    """Return recursive halving, which is the reverse of recursive doubling."""
    return recursive_doubling(nranks, nbytes).reversed()


def reduced_in_switches(
    trees: Sequence[Tree], nbytes: int, slice_bytes: int
) -> Schedule:
    """Return the Reduce-Scatter in which switches add up what comes to them.

    Each message crosses one link. A switch that has a slice from all ports of the tree
    but the one towards the slice's owner passes the sum on. All ranks send in the same
    order: a slice of each block, then the next of each, so that the owners' links carry
    their blocks at the same time, each at its share of the rate.

    Parameters
    ----------
    trees
        The trees of the groups of all ranks; the blocks use them in turn.
    nbytes
        The bytes of a block.
    slice_bytes
        The bytes of a slice.

    Raises
    ------
    ValueError
        If there are no bytes, or the trees are not of the same ranks.
    """
    ranks = trees[0].ranks
    if not all(np.array_equal(tree.ranks, ranks) for tree in trees):
        raise ValueError("the trees of a Reduce-Scatter are of different ranks")
    blocks(len(ranks), nbytes)
    sizes = slices(nbytes, slice_bytes)
    columns = _columns(trees, len(sizes))
    sender, receiver, item, following = _in_turn(
        len(sizes), *(joined(each) for each in columns)
    )
    ones = np.ones_like(item)
    contents = Contents(np.tile(sizes, len(ranks)), item, ones, ones)
    before = np.flatnonzero(following >= 0)
    return scheduled(sender, receiver, contents, (before, following[before]))


def _in_turn(
    nslices: int,
    sender: NDArray[np.int64],
    receiver: NDArray[np.int64],
    item: NDArray[np.int64],
    following: NDArray[np.int64],
) -> tuple[NDArray[np.int64], ...]:
    """Return the messages of all first slices, then those of all second, and so on."""
    order = np.argsort(item % nslices, kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    following = np.where(following < 0, following, place[following])
    return sender[order], receiver[order], item[order], following[order]


def _columns(
    trees: Sequence[Tree], nslices: int
) -> Sequence[Sequence[NDArray[np.int64]]]:
    """Return the senders, receivers, items and followers of the messages of blocks."""
    gathers: dict[tuple[int, int], _Gather] = {}
    rows, nsent = [], 0
    for block, owner in enumerate(trees[0].ranks if len(trees[0].ranks) > 1 else []):
        turn = block % len(trees)
        key = turn, int(trees[turn].fabric.switches[owner])
        if key not in gathers:
            gathers[key] = _gather(trees[turn], key[1])
        gather = gathers[key].to(block, int(owner))
        nmessages = len(gather.sender)
        number = np.repeat(np.arange(nslices), nmessages)
        following = np.tile(gather.following, nslices)
        ahead = np.where(following < 0, 0, nsent + number * nmessages)
        rows.append(
            (
                np.tile(gather.sender, nslices),
                np.tile(gather.receiver, nslices),
                block * nslices + number,
                following + ahead,
            )
        )
        nsent += nslices * nmessages
    return list(zip(*rows, strict=True)) or [[]] * 4


class _Gather(NamedTuple):
    """The messages by which one slice comes to a switch: ranks' first, then switches'.

    Each has its sender, its receiver, and the message that follows it: -1 for none.
    """

    sender: NDArray[np.int64]
    receiver: NDArray[np.int64]
    following: NDArray[np.int64]

    def to(self, index: int, owner: int) -> _Gather:
        """Return the messages to one rank, which sends none itself.

        Parameters
        ----------
        index
            The rank's place among those that send.
        owner
            The rank.
        """
        sender, receiver, following = (np.delete(column, index) for column in self)
        receiver[-1] = owner
        return _Gather(sender, receiver, following - (following >= 0))


def _gather(tree: Tree, goal: int) -> _Gather:
    """Return the messages to a switch of a tree, and its own to a rank to be named."""
    fabric, nranks = tree.fabric, len(tree.ranks)
    at = fabric.switches[tree.ranks].astype(np.int64)
    busy = set(at.tolist())
    hops: list[tuple[int, int]] = []
    for switch, link in tree.towards(goal):
        if switch in busy:
            end = int(fabric.links.end[link]) - fabric.nhosts
            hops.append((switch, end))
            busy.add(end)
    own = {switch: nranks + place for place, (switch, _) in enumerate(hops)}
    own[goal] = nranks + len(hops)
    switches = np.array([*(start for start, _ in hops), goal], np.int64)
    nearer = np.array([*(end for _, end in hops), 0], np.int64)
    return _Gather(
        joined([tree.ranks, switches + fabric.nhosts]),
        joined([at + fabric.nhosts, nearer + fabric.nhosts]),
        joined(
            [
                [own[switch] for switch in at.tolist()],
                [own[end] for _, end in hops],
                [-1],
            ]
        ),
    )
