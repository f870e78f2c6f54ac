# SPDX-License-Identifier: BSD-3-Clause
"""Allgathers by recursive exchange: recursive doubling, and k-nomial."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mpimcast._peers.contents import Contents, blocks
from mpimcast._peers.ragged import places
from mpimcast._peers.schedule import joined, scheduled

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mpimcast._peers.schedule import Schedule


def recursive_doubling(nranks: int, nbytes: int) -> Schedule:
    """Return recursive doubling, which is `k_nomial` of radix 2."""
    return k_nomial(nranks, nbytes, 2)


def k_nomial(nranks: int, nbytes: int, radix: int) -> Schedule:
    """Return the exchange in which k ranks pass each other all that they have.

    In each step the groups that know the same blocks are k times as large. If the
    number of ranks is no power of k, the ranks are divided among as many
    representatives as there are in the next smaller power: the others send their blocks
    to these first, and get all blocks at the end.

    Parameters
    ----------
    nranks
        The number of ranks.
    nbytes
        The bytes of a block.
    radix
        The number k; no more than the number of ranks are used.

    Raises
    ------
    ValueError
        If there are no ranks or no bytes, or the radix is less than 2.
    """
    if radix <= 1:
        raise ValueError(f"a recursive exchange of radix {radix} exchanges nothing")
    sizes = blocks(nranks, nbytes)
    exchange = _Exchange(nranks, max(2, min(radix, nranks)))
    sender, receiver, first, count, before, after = (
        joined(each) for each in exchange.columns()
    )
    contents = Contents(sizes, first, count, np.ones_like(first))
    return scheduled(sender, receiver, contents, (before, after))


class _Exchange:
    """The messages of a recursive exchange, in columns.

    Parameters
    ----------
    nranks, radix
        As of `k_nomial`.
    """

    def __init__(self, nranks: int, radix: int) -> None:
        self._nranks = nranks
        self._radix = radix
        nparts = 1
        while nparts * radix <= nranks:
            nparts *= radix
        # Representative v stands for the ranks from starts[v] on, and is the first.
        numbers = np.arange(nparts + 1)
        each, larger = divmod(nranks, nparts)
        self._starts = numbers * each + np.minimum(numbers, larger)
        self._sent = 0
        self._messages: list[tuple[NDArray[np.int64], ...]] = []
        self._dependencies: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []
        # The messages so far, and the representatives that have received them.
        self._received: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []

    def columns(self) -> list[list[NDArray[np.int64]]]:
        """Return senders, receivers, firsts, counts, and both ends of dependencies."""
        first, nparts = self._starts[:-1], len(self._starts) - 1
        others = np.setdiff1d(np.arange(self._nranks), first)
        part = np.searchsorted(self._starts, others, "right") - 1
        ones = np.ones_like(others)
        self._received.append((self._send(others, first[part], others, ones), part))
        distance = 1
        while distance < nparts:
            self._exchange(distance)
            distance *= self._radix
        final = self._send(first[part], others, others + 1, ones * (self._nranks - 1))
        self._wait(final, part)
        return [
            *(list(column) for column in zip(*self._messages, strict=True)),
            *(list(column) for column in zip(*self._dependencies, strict=True)),
        ]

    def _exchange(self, distance: int) -> None:
        """Let groups of representatives, `distance` apart, pass each other all."""
        parts = np.arange(len(self._starts) - 1)
        group = parts // distance * distance
        count = self._starts[group + distance] - self._starts[group]
        digit = parts // distance % self._radix
        received = []
        for turn in range(1, self._radix):
            other = parts + ((digit + turn) % self._radix - digit) * distance
            ends = self._starts[parts], self._starts[other]
            sent = self._send(*ends, self._starts[group], count)
            self._wait(sent, parts)
            received.append((sent, other))
        self._received += received

    def _send(self, *columns: NDArray[np.int64]) -> NDArray[np.int64]:
        """Add messages (sender, receiver, first, count); return their numbers."""
        numbers = np.arange(self._sent, self._sent + len(columns[0]))
        self._sent += len(numbers)
        self._messages.append(columns)
        return numbers

    def _wait(self, sent: NDArray[np.int64], parts: NDArray[np.int64]) -> None:
        """Let messages wait for all that has been sent to their senders, `parts`."""
        for received, part in self._received:
            # A representative has got any number of messages, and sends as many.
            by_part = np.argsort(part, kind="stable")
            low, high = (
                np.searchsorted(part[by_part], parts, side)
                for side in ("left", "right")
            )
            counts = high - low
            before = received[by_part[np.repeat(low, counts) + places(counts)]]
            self._dependencies.append((before, np.repeat(sent, counts)))
