# SPDX-License-Identifier: BSD-3-Clause
"""Cuts collectives into pieces, of which some are on the network at a time.

All ranks cut alike: a collective is cut if its communicator has ranks with devices,
wherever this rank's own buffers lie.
"""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# The most bytes of a piece's result. A larger piece fills networks no better, and takes
# more pinned memory; with a smaller one more time passes in barriers.
PIECE_BYTES = 16 << 20

# Parts of blocks begin at multiples of this, as processors and devices like it.
_ALIGNMENT_BYTES = 64


def cut_bytes(facts: Sequence[Mapping[str, Any]]) -> int:
    """Return the size of a result above which ranks with these facts cut; 0: never."""
    return PIECE_BYTES if any(fact["devices"] for fact in facts) else 0


class Part(NamedTuple):
    """The part of a block that a piece has.

    Attributes
    ----------
    nbytes : int
        Its bytes; 0 if the block has ended before.
    within : int
        Where it begins in its block.
    place : int
        Where it begins in the memory for all blocks.
    slot : int
        Where it begins in a slot, in which a piece has no gaps.
    """

    nbytes: int
    within: int
    place: int
    slot: int


def cut(
    blocks_bytes: Sequence[int], offsets_bytes: Sequence[int], piece_bytes: int
) -> list[list[Part]]:
    """Return the parts of each piece, one of each block.

    Parameters
    ----------
    blocks_bytes, offsets_bytes
        The bytes of each block, and where it begins in the memory for all.
    piece_bytes
        The most bytes of a piece.
    """
    longest = max(blocks_bytes)
    length = longest
    if sum(blocks_bytes) > piece_bytes:
        nfull = sum(1 for nbytes in blocks_bytes if nbytes)
        aligned = piece_bytes // nfull // _ALIGNMENT_BYTES * _ALIGNMENT_BYTES
        length = max(aligned, _ALIGNMENT_BYTES)
    pieces = []
    for begin in range(0, max(longest, 1), max(length, 1)):
        sizes = [max(0, min(length, nbytes - begin)) for nbytes in blocks_bytes]
        slots = [0, *accumulate(sizes[:-1])]
        pieces.append(
            [
                Part(nbytes, begin, offset + begin, slot)
                for nbytes, offset, slot in zip(
                    sizes, offsets_bytes, slots, strict=True
                )
            ]
        )
    return pieces
