# SPDX-License-Identifier: BSD-3-Clause
"""Broadcasts by unicast: linear, binomial, scatter and Allgather, pipelined chain."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mpimcast._peers.contents import Contents, blocks, slices
from mpimcast._peers.schedule import joined, scheduled

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from mpimcast._peers.schedule import Schedule


def linear(nranks: int, nbytes: int, root: int = 0) -> Schedule:
    """Return the Broadcast in which the root sends to every other rank itself."""
    others = np.arange(1, nranks)
    return _rooted(nranks, root, (others * 0, others), _whole(nranks, nbytes), ([], []))


def binomial(nranks: int, nbytes: int, root: int = 0) -> Schedule:
    """Return the binomial tree: in each step all that have the block send it on."""
    sender, receiver = _tree(nranks)
    arrival = _arrival(receiver)
    after = np.flatnonzero(sender)
    contents = _whole(nranks, nbytes)
    dependencies = arrival[sender[after]], after
    return _rooted(nranks, root, (sender, receiver), contents, dependencies)


def scatter_allgather(nranks: int, nbytes: int, root: int = 0) -> Schedule:
    """Return the algorithm of van de Geijn: a binomial scatter, then a ring.

    Raises
    ------
    ValueError
        If there are fewer bytes than ranks.
    """
    if not 1 <= nranks <= nbytes:
        raise ValueError(f"{nbytes} bytes cannot be scattered to {nranks} ranks")
    each, larger = divmod(nbytes, nranks)
    sizes = (each + (np.arange(nranks) < larger)).astype(np.uint64)
    sender, receiver = _tree(nranks)
    nscatter = len(sender)
    parts = np.minimum(receiver - sender, nranks - receiver)
    step, rank = np.divmod(np.arange(nranks * (nranks - 1)), nranks)
    numbers = nscatter + np.arange(len(step))
    later = numbers[nranks:]
    left = nscatter + (step[nranks:] - 1) * nranks + (rank[nranks:] - 1) % nranks
    arrival = _arrival(receiver)
    below = np.flatnonzero(sender)
    first = joined([receiver, (rank - step) % max(1, nranks)])
    count = joined([parts, np.ones_like(rank)])
    return _rooted(
        nranks,
        root,
        (joined([sender, rank]), joined([receiver, (rank + 1) % nranks])),
        Contents(sizes, first, count, np.ones_like(count)),
        (
            joined([arrival[sender[below]], arrival[1:], left]),
            joined([below, numbers[1:nranks], later]),
        ),
    )


def pipelined_chain(
    nranks: int, nbytes: int, slice_bytes: int, root: int = 0
) -> Schedule:
    """Return the chain in which each rank passes on slice after slice.

    Parameters
    ----------
    nranks, nbytes
        The number of ranks, and the bytes of the block.
    slice_bytes
        The bytes of a slice.
    root
        The rank that has the block.

    Raises
    ------
    ValueError
        If there are no ranks or no bytes.
    """
    sizes = slices(nbytes, slice_bytes)
    blocks(nranks, nbytes)
    nlinks = nranks - 1
    number = np.arange(len(sizes) * nlinks)
    item, sender = np.divmod(number, max(1, nlinks))
    ones = np.ones_like(item)
    after = np.flatnonzero(sender)
    contents = Contents(sizes, item, ones, ones)
    return _rooted(nranks, root, (sender, sender + 1), contents, (after - 1, after))


def _whole(nranks: int, nbytes: int) -> Contents:
    """Return the contents of messages to all ranks but one: the whole block each."""
    ones = np.ones(len(blocks(nranks, nbytes)) - 1, np.int64)
    return Contents(blocks(1, nbytes), ones * 0, ones, ones)


def _tree(nranks: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return senders and receivers of a binomial tree, the farthest receivers first."""
    senders, receivers = [], []
    distance = 1 << max(0, nranks - 1).bit_length()
    while distance > 1:
        stride, distance = distance, distance // 2
        senders.append(np.arange(0, nranks - distance, stride))
        receivers.append(senders[-1] + distance)
    return joined(senders), joined(receivers)


def _arrival(receiver: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the message that each rank receives; the root, rank 0, has none."""
    arrival = np.full(len(receiver) + 1, -1)
    arrival[receiver] = np.arange(len(receiver))
    return arrival


def _rooted(
    nranks: int,
    root: int,
    ends: tuple[NDArray[np.int64], NDArray[np.int64]],
    contents: Contents,
    dependencies: tuple[ArrayLike, ArrayLike],
) -> Schedule:
    """Return a schedule, whose ends are given relative to the root."""
    sender, receiver = ((each + root) % nranks for each in ends)
    before, after = (joined([each]) for each in dependencies)
    return scheduled(sender, receiver, contents, (before, after))
