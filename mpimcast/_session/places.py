# SPDX-License-Identifier: BSD-3-Clause
"""Where the blocks of a result lie, as its user counts items of the receive buffer."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class Range(NamedTuple):
    """Bytes of one rank's block: from which byte on, and how many."""

    rank: int
    first_bytes: int
    nbytes: int


class Places(NamedTuple):
    """Where the blocks of a result lie.

    Attributes
    ----------
    ranks : range
        The ranks that have a block: all or, of a Bcast, the root.
    own : int
        This rank.
    item_bytes : int
        Bytes of an item of the receive buffer.
    is_direct : bool
        Whether data arrives in the receive buffer itself. Otherwise it is unpacked
        there once the operation has ended.
    blocks_bytes : int or sequence of int
        Bytes of each block; one number if they are equal, and lie one after the other.
    offsets_bytes : sequence of int
        Where each block begins in the receive buffer; not used for equal blocks.
    """

    ranks: range
    own: int
    item_bytes: int
    is_direct: bool
    blocks_bytes: int | Sequence[int]
    offsets_bytes: Sequence[int] = ()

    def nbytes(self, rank: int) -> int:
        """Return the bytes of a rank's block; raise ValueError if it has none."""
        index = self.ranks.index(rank) if rank in self.ranks else -1
        if index < 0:
            have = f"ranks 0 to {len(self.ranks) - 1} have"
            if len(self.ranks) == 1:
                have = f"only rank {self.ranks[0]} has"
            raise ValueError(f"rank {rank} has no block in this result: {have} one")
        sizes = self.blocks_bytes
        return sizes if isinstance(sizes, int) else sizes[index]

    def order(self) -> list[int]:
        """Return the ranks in the order in which blocks that end together are told."""
        return sorted(self.ranks, key=lambda rank: (rank != self.own, rank))

    def ranges(self, first: int, count: int) -> Iterator[Range]:
        """Yield the ranges of blocks that some items of the receive buffer belong to.

        Raise ValueError if they do not lie within the result.
        """
        begin, count = operator.index(first), operator.index(count)
        nitems = self._end_bytes() // max(self.item_bytes, 1)
        if begin < 0 or count < 0 or begin + count > nitems:
            raise ValueError(
                f"items {begin} to {begin + count} are not in this result, which has "
                f"{nitems}"
            )
        return self._overlaps(begin * self.item_bytes, count * self.item_bytes)

    def _overlaps(self, begin: int, nbytes: int) -> Iterator[Range]:
        end = begin + nbytes
        for rank, (offset, size) in self._candidates(begin, end):
            low, high = max(begin, offset), min(end, offset + size)
            if low < high:
                yield Range(rank, low - offset, high - low)

    def _candidates(
        self, begin: int, end: int
    ) -> Iterator[tuple[int, tuple[int, int]]]:
        """Yield ranks, and where their blocks begin and how long they are."""
        sizes = self.blocks_bytes
        if not isinstance(sizes, int):
            yield from zip(
                self.ranks, zip(self.offsets_bytes, sizes, strict=True), strict=True
            )
        elif sizes > 0:
            for index in range(begin // sizes, min(-(-end // sizes), len(self.ranks))):
                yield self.ranks[index], (index * sizes, sizes)

    def _end_bytes(self) -> int:
        """Return where the last block ends in the receive buffer."""
        sizes = self.blocks_bytes
        if isinstance(sizes, int):
            return sizes * len(self.ranks)
        ends = (
            offset + size
            for offset, size in zip(self.offsets_bytes, sizes, strict=True)
            if size
        )
        return max(ends, default=0)
