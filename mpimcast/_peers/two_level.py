# SPDX-License-Identifier: BSD-3-Clause
"""Allgather in two levels: within groups of ranks, and between these."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mpimcast._peers.contents import Contents, blocks
from mpimcast._peers.ragged import places
from mpimcast._peers.schedule import joined, scheduled

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from mpimcast._peers.schedule import Schedule

_Columns = tuple[
    "NDArray[np.int64]", "NDArray[np.int64]", "NDArray[np.int64]", "NDArray[np.int64]"
]


def two_level(groups: Sequence[int], nbytes: int) -> Schedule:
    """Return an Allgather within groups, a ring of their leaders, and what it brings.

    In a group each rank sends its block to each other. The leader, the first rank of
    its group, passes the blocks of whole groups around the ring, and each that it gets
    to the other ranks of its group.

    Parameters
    ----------
    groups
        The group of each rank, such as its node or its leaf.
    nbytes
        The bytes of a block.

    Raises
    ------
    ValueError
        If there are no ranks or no bytes.
    """
    blocks_of_all = blocks(len(groups), nbytes)
    levels = _Levels(np.asarray(groups))
    within, around, onward = levels.within(), levels.around(), levels.onward()
    columns = [joined(each) for each in zip(within, around, onward, strict=True)]
    sender, receiver, first, count = columns
    contents = Contents(blocks_of_all, first, count, np.ones_like(first), levels.order)
    dependencies = levels.dependencies(within[1])
    return scheduled(sender, receiver, contents, dependencies)


class _Levels:
    """The groups of ranks, and the messages of each level.

    Messages are columns of senders, receivers, first blocks and counts, where blocks
    are in the order of groups.

    Parameters
    ----------
    labels
        The group of each rank.
    """

    def __init__(self, labels: NDArray[np.int64]) -> None:
        self.order = np.argsort(labels, kind="stable")
        _, starts, sizes = np.unique(
            labels[self.order], return_index=True, return_counts=True
        )
        self._starts, self._sizes = starts, sizes
        self._leaders = self.order[starts]
        self._ngroups = len(starts)
        # For each message of the ring of leaders, its step, and the group it is from.
        self._step, self._left = np.divmod(
            np.arange(self._ngroups * (self._ngroups - 1)), self._ngroups
        )
        self._right = (self._left + 1) % self._ngroups
        # To how many ranks the right leader passes on what it gets.
        self._copies: NDArray[np.int64] = sizes[self._right] - 1

    def within(self) -> _Columns:
        """Return the messages from each rank to each other of its group."""
        start = np.repeat(self._starts, self._sizes)
        size = np.repeat(self._sizes, self._sizes)
        place = np.arange(len(self.order))
        senders, receivers = [], []
        for ahead in range(1, int(self._sizes.max())):
            going = ahead < size
            own, low = place[going], start[going]
            senders.append(own)
            receivers.append(low + (own - low + ahead) % size[going])
        first = joined(senders)
        receiver = self.order[joined(receivers)]
        return self.order[first], receiver, first, np.ones_like(first)

    def around(self) -> _Columns:
        """Return the messages of the ring of leaders, a step after the other."""
        carried = (self._left - self._step) % self._ngroups
        return (
            self._leaders[self._left],
            self._leaders[self._right],
            self._starts[carried],
            self._sizes[carried],
        )

    def onward(self) -> _Columns:
        """Return the messages by which leaders pass on what the ring brings."""
        _, leader, first, count = self.around()
        after_leader = np.repeat(self._starts[self._right] + 1, self._copies)
        return (
            np.repeat(leader, self._copies),
            self.order[after_leader + places(self._copies)],
            np.repeat(first, self._copies),
            np.repeat(count, self._copies),
        )

    def dependencies(
        self, receivers: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return both ends of all dependencies; the three levels follow each other.

        Parameters
        ----------
        receivers
            The receivers of the messages within groups.
        """
        nwithin, naround = len(receivers), len(self._step)
        group_of = np.full(len(self.order), -1)
        group_of[self._leaders] = np.arange(self._ngroups)
        # A leader begins the ring, if there is one, when it has its group's blocks.
        gathered = np.flatnonzero((group_of[receivers] >= 0) & (naround > 0))
        beginning = nwithin + group_of[receivers[gathered]]
        # It goes on with what the leader to its left has sent in the step before.
        later = np.flatnonzero(self._step)
        sent = (self._step[later] - 1) * self._ngroups
        sent += (self._left[later] - 1) % self._ngroups
        onward = np.repeat(nwithin + np.arange(naround), self._copies)
        return (
            joined([gathered, nwithin + sent, onward]),
            joined(
                [
                    beginning,
                    nwithin + later,
                    nwithin + naround + np.arange(len(onward)),
                ]
            ),
        )
