# SPDX-License-Identifier: BSD-3-Clause
"""A message schedule: who sends what to whom, and after what."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mpimcast._peers.ragged import begins

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import ArrayLike, NDArray

    from mpimcast._peers.contents import Contents


@dataclass(frozen=True, eq=False)
class Messages:
    """Messages, and which of them wait for which.

    A vertex sends the messages that may start in the order of their numbers.

    Parameters
    ----------
    sender, receiver
        The vertices of each message, of shape (nmessages,): ranks, and switches where
        these take part.
    nbytes
        The bytes of each message.
    next_first, next
        ``next[next_first[i] : next_first[i + 1]]`` are the messages that start only
        when message i has been received. Their sender is its receiver.
    """

    sender: NDArray[np.uint32]
    receiver: NDArray[np.uint32]
    nbytes: NDArray[np.uint64]
    next_first: NDArray[np.uint64]
    next: NDArray[np.uint32]

    @property
    def total_bytes(self) -> int:
        """The bytes of all messages."""
        return int(self.nbytes.sum())

    @property
    def dependencies(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """For each dependency the message before and the one after it."""
        first = self.next_first.astype(np.int64)
        counts = first[1:] - first[:-1]
        return np.repeat(np.arange(len(counts)), counts), self.next.astype(np.int64)

    def beside(self, other: Messages) -> Messages:
        """Return these messages and others, which do not wait for each other."""
        ahead = self.next_first[-1]
        return Messages(
            np.concatenate([self.sender, other.sender]),
            np.concatenate([self.receiver, other.receiver]),
            np.concatenate([self.nbytes, other.nbytes]),
            np.concatenate([self.next_first, other.next_first[1:] + ahead]),
            np.concatenate([self.next, other.next + np.uint32(len(self.sender))]),
        )


def no_messages() -> Messages:
    """Return no messages."""
    none32, none64 = np.zeros(0, np.uint32), np.zeros(0, np.uint64)
    return Messages(none32, none32, none64, np.zeros(1, np.uint64), none32)


@dataclass(frozen=True, eq=False)
class Schedule(Messages):
    """All messages of one collective.

    Parameters
    ----------
    contents
        What each message carries.
    """

    contents: Contents

    def reversed(self) -> Schedule:
        """Return the schedule of all messages the other way, in reverse order.

        Where this one brings each block to each rank once, the reverse adds up what
        each rank contributes to each block: it is a Reduce-Scatter for an Allgather.
        """
        last = len(self.sender) - 1
        before, after = self.dependencies
        return scheduled(
            self.receiver[::-1],
            self.sender[::-1],
            self.contents.reversed(),
            (last - after[::-1], last - before[::-1]),
        )


def scheduled(
    sender: ArrayLike,
    receiver: ArrayLike,
    contents: Contents,
    dependencies: tuple[ArrayLike, ArrayLike],
) -> Schedule:
    """Return a schedule.

    Parameters
    ----------
    sender, receiver, contents
        As of `Schedule`.
    dependencies
        For each dependency the message before and the one after it, in any order.
    """
    before, after = (np.asarray(each, np.int64) for each in dependencies)
    senders, receivers = (np.asarray(each, np.uint32) for each in (sender, receiver))
    counts = np.bincount(before, minlength=len(senders))
    return Schedule(
        np.ascontiguousarray(senders),
        np.ascontiguousarray(receivers),
        contents.nbytes(),
        begins(counts).astype(np.uint64),
        after[np.lexsort((after, before))].astype(np.uint32),
        contents,
    )


def joined(arrays: Iterable[ArrayLike]) -> NDArray[np.int64]:
    """Return arrays of integers one after the other, even if there are none."""
    flat = [np.ravel(np.asarray(each, np.int64)) for each in arrays]
    return np.concatenate([np.zeros(0, np.int64), *flat])
