# SPDX-License-Identifier: BSD-3-Clause
"""Which blocks have landed of an operation that goes in pieces.

Pieces end in order, and each takes the next part of every block, so what has landed of
a block is its beginning. The data of a device has landed once the device has it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mpimcast._native.landing import Bits
    from mpimcast._session.cutting import Part


class PiecewiseLanding:
    """The blocks of an operation in pieces; its methods are those of `NativeLanding`.

    Parameters
    ----------
    wait
        Waits until a piece has moved, but for a slice of time at most.
    wake
        Has completers look at the operation.
    """

    def __init__(self, wait: Callable[[], bool], wake: Callable[[], None]) -> None:
        self._wait = wait
        self._wake = wake
        self._first_rank = 0
        self._blocks_bytes: list[int] = []
        self._present_bytes: list[int] = []
        self._order: list[int] = []

    def begin(self, blocks_bytes: Sequence[int], first_rank: int) -> None:
        """Take the bytes of each block, of which the first is that of `first_rank`."""
        self._first_rank = first_rank
        self._blocks_bytes = list(blocks_bytes)
        self._present_bytes = [0] * len(self._blocks_bytes)
        self._note_whole()

    def add(self, parts: Sequence[Part]) -> None:
        """Record that a piece has ended."""
        for block, part in enumerate(parts):
            self._present_bytes[block] += part.nbytes
        self._note_whole()
        self._wake()

    def _note_whole(self) -> None:
        for block, nbytes in enumerate(self._blocks_bytes):
            rank = self._first_rank + block
            if self._present_bytes[block] == nbytes and rank not in self._order:
                self._order.append(rank)

    def block(self, index: int) -> int | None:
        """Return whose block was number `index`, from 0, to land; None if none was."""
        return self._order[index] if index < len(self._order) else None

    def has(self, rank: int, first_bytes: int, nbytes: int) -> bool:
        """Return whether a range of a block is present."""
        block = rank - self._first_rank
        present = self._present_bytes
        return bool(present) and first_bytes + nbytes <= present[block]

    def wait_block(self, _index: int, _slice_ns: int) -> None:
        """Wait until a piece has moved, but for a slice of time at most."""
        self._wait()

    def wait_range(
        self, _rank: int, _first_bytes: int, _nbytes: int, _slice_ns: int
    ) -> None:
        """Wait until a piece has moved, but for a slice of time at most."""
        self._wait()

    def tell(self) -> None:
        """Do nothing: whoever moves a piece has the completers look."""

    def bits(self) -> Bits | None:
        """Return None: no chunks are told of."""
        return None
