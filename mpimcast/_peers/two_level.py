# SPDX-License-Identifier: BSD-3-Clause
"""Allgather in two levels: within groups of ranks, and between these."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mpimcast._peers.contents import Contents, blocks
from mpimcast._peers.ragged import begins, places
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
    dependencies = levels.dependencies(within, len(around[0]))
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
        # The places of all ranks but leaders in the order of groups.
        self._others = np.setdiff1d(np.arange(len(labels)), starts)

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
        ngroups = len(self._leaders)
        step, group = np.divmod(np.arange(ngroups * (ngroups - 1)), ngroups)
        carried = (group - step) % ngroups
        return (
            self._leaders[group],
            self._leaders[(group + 1) % ngroups],
            self._starts[carried],
            self._sizes[carried],
        )

    def onward(self) -> _Columns:
        """Return the messages by which leaders pass on what the ring brings."""
        _, leader, first, count = self.around()
        copies = self._copies()
        return (
            np.repeat(leader, copies),
            self.order[self._others[self._passed()]],
            np.repeat(first, copies),
            np.repeat(count, copies),
        )

    def dependencies(
        self, within: _Columns, naround: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return both ends of all dependencies; the three levels follow each other."""
        ngroups, nwithin = len(self._leaders), len(within[0])
        ring = nwithin + np.arange(naround)
        group_of = np.full(len(self.order), -1)
        group_of[self._leaders] = np.arange(ngroups)
        to_leader = np.flatnonzero(group_of[within[1]] >= 0) if naround else ring[:0]
        later = ring[ngroups:]
        back = later - ngroups
        turned = back - (back - nwithin) % ngroups
        onward = np.repeat(ring, self._copies())
        return (
            joined([to_leader, turned + (back - nwithin - 1) % ngroups, onward]),
            joined(
                [
                    nwithin + group_of[within[1][to_leader]],
                    later,
                    nwithin + naround + np.arange(len(onward)),
                ]
            ),
        )

    def _copies(self) -> NDArray[np.int64]:
        """Return how many ranks get what each message of the ring brings."""
        ngroups = len(self._leaders)
        receiving = (np.arange(ngroups * (ngroups - 1)) + 1) % ngroups
        copies: NDArray[np.int64] = self._sizes[receiving] - 1
        return copies

    def _passed(self) -> NDArray[np.int64]:
        """Return who gets each onward message, as an index of the other ranks."""
        copies = self._copies()
        before = begins(self._sizes - 1)
        receiving = (np.arange(len(copies)) + 1) % max(1, len(self._leaders))
        return np.repeat(before[receiving], copies) + places(copies)
