# SPDX-License-Identifier: BSD-3-Clause
"""What each message of a schedule carries: blocks, or slices of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mpimcast._peers.ragged import begins, places

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Contents:
    """Which items each message carries; an item is a block or a slice of one.

    Message i carries, for each j below ``count[i]``, the item
    ``order[(first[i] + j * stride[i]) % nitems]``.

    Parameters
    ----------
    sizes
        The bytes of each item, of shape (nitems,).
    first, count, stride
        Of shape (nmessages,).
    order
        A permutation of the items, of shape (nitems,), or None for their own order.
    """

    sizes: NDArray[np.uint64]
    first: NDArray[np.int64]
    count: NDArray[np.int64]
    stride: NDArray[np.int64]
    order: NDArray[np.int64] | None = None

    def items(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return where the items of each message begin, and the items of all.

        Those of message i are ``items[begin[i] : begin[i + 1]]``.
        """
        items = np.repeat(self.first, self.count)
        items += places(self.count) * np.repeat(self.stride, self.count)
        items %= len(self.sizes)
        return begins(self.count), items if self.order is None else self.order[items]

    def nbytes(self) -> NDArray[np.uint64]:
        """Return the bytes of each message."""
        if (self.sizes == self.sizes[0]).all():
            sums = self.count * int(self.sizes[0])
        else:
            begin, items = self.items()
            ends = begins(self.sizes[items].astype(np.int64))
            sums = ends[begin[1:]] - ends[begin[:-1]]
        return sums.astype(np.uint64)

    def reversed(self) -> Contents:
        """Return the contents of the messages in reverse order."""
        first, count, stride = (
            each[::-1] for each in (self.first, self.count, self.stride)
        )
        return Contents(self.sizes, first, count, stride, self.order)


def blocks(nranks: int, nbytes: int) -> NDArray[np.uint64]:
    """Return the sizes of the blocks of all ranks.

    Raises
    ------
    ValueError
        If there are no ranks, or no bytes.
    """
    if nranks < 1 or nbytes < 1:
        raise ValueError(f"{nranks} ranks with blocks of {nbytes} bytes send nothing")
    return np.full(nranks, nbytes, np.uint64)


def slices(nbytes: int, slice_bytes: int) -> NDArray[np.uint64]:
    """Return the sizes of the slices of a block, of which the last may be shorter.

    Raises
    ------
    ValueError
        If a size is not positive.
    """
    if nbytes < 1 or slice_bytes < 1:
        raise ValueError(f"{nbytes} bytes cannot be cut into slices of {slice_bytes}")
    ends = np.arange(0, nbytes, slice_bytes)
    return np.minimum(slice_bytes, nbytes - ends).astype(np.uint64)
