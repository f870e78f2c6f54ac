# SPDX-License-Identifier: BSD-3-Clause
"""The receive buffer of an Allgatherv, whose blocks may have different sizes.

mpi4py checks it as it checks other buffers, but on ``COMM_SELF``, which has a single
rank. This module therefore reads the counts and displacements, one for each rank, by
mpi4py's rules.
"""

from __future__ import annotations

import operator
from itertools import accumulate
from typing import Any

from mpi4py import MPI

from mpimcast._mpi import buffers, messages


class Blocks(buffers.Message):
    """Blocks that need not be equal, adjacent or in rank order.

    Attributes
    ----------
    address : int
        The beginning of the block that has the smallest displacement.
    packed : bool
        Whether every block lies in one piece and in the order of its bytes.
    begin_bytes : int
        `address`, relative to the beginning of the buffer.
    blocks_bytes : list of int
        Bytes of each block, gaps not counted.
    offsets_bytes : list of int
        The beginning of each block, relative to `address`; 0 for an empty one.
    """

    def __init__(
        self,
        owner: object,
        address: int,
        item: MPI.Datatype | int,
        counts: list[int],
        displacements: list[int],
    ) -> None:
        """Take the blocks of a buffer.

        Parameters
        ----------
        owner
            The object that keeps the memory alive.
        address
            The beginning of the buffer.
        item
            The type of the items, or the size of an item in bytes.
        counts, displacements
            The number of items in each block, and the place of its first item.
        """
        if isinstance(item, int):
            datatype, size, extent = None, item, item
        else:
            datatype, size, extent = item, item.Get_size(), item.Get_extent()[1]
        pairs = list(zip(counts, displacements, strict=True))
        first = min((begin for count, begin in pairs if count), default=0)
        super().__init__(
            owner,
            address + first * extent,
            sum(counts) * (size if datatype is None else 1),
            datatype,
        )
        self.item_bytes = size
        self.begin_bytes = first * extent
        self._counts = counts
        self._displacements = [begin - first if count else 0 for count, begin in pairs]
        self.blocks_bytes = [count * size for count in counts]
        self.offsets_bytes = [begin * extent for begin in self._displacements]

    def pack_block(self, index: int, address: int) -> None:
        """Copy block `index` to `address`, without gaps."""
        where = [self._displacements[index]]
        self.copy([self._counts[index]], where, address, out=False)

    def unpack(self, address: int) -> None:
        """Copy all blocks from `address`, where they lie one after the other."""
        self.copy(self._counts, self._displacements, address, out=True)


def receiving(recvbuf: Any, nblocks: int) -> Blocks:
    """Parse a receive buffer for blocks of any sizes. Raises as mpi4py does."""
    buffer, counts, displacements, datatype = _items(recvbuf)
    if isinstance(datatype, str):
        datatype = MPI.Datatype.fromcode(datatype)
    owner, address, length, extent = buffers.locate(buffer, datatype)
    if counts is None:
        # mpi4py divides the items evenly, and gives what is left to the first blocks.
        each, nleft = divmod(length // extent if length else 0, nblocks)
        counts = [each + (index < nleft) for index in range(nblocks)]
    elif _is_number(counts):
        counts = [operator.index(counts)] * nblocks
    else:
        counts = _numbers(counts, nblocks)
    if displacements is None:
        displacements = [0, *accumulate(counts[:-1])]
    elif _is_number(displacements):
        displacements = [operator.index(displacements) * i for i in range(nblocks)]
    else:
        displacements = _numbers(displacements, nblocks)
    if min(counts) < 0:
        buffers.refuse(
            MPI.COMM_SELF.Allgatherv,
            MPI.IN_PLACE,
            [buffer, [min(counts)], [0], datatype],
            error=MPI.ERR_COUNT,
        )
    item = extent if datatype is None else datatype
    return Blocks(owner, address, item, counts, displacements)


def _items(spec: Any) -> messages.Items:
    """Split a message into its items; mpi4py checks all but the displacements."""
    if not isinstance(spec, list | tuple):
        _judge(spec)
        return messages.Items(spec)
    try:
        # A tuple holds counts and displacements, while a list holds counts alone.
        items = messages.split(spec, (tuple,))
    except ValueError:
        _judge(spec)  # raises mpi4py's own error if mpi4py also refuses the message
        raise
    count = None if items.counts is None else 0
    _judge([items.buffer, count, items.datatype])
    return items


def _judge(spec: Any) -> None:
    """Raise mpi4py's error if it refuses a receive buffer."""
    buffers.judge(MPI.COMM_SELF.Recv_init, spec)


def _is_number(given: Any) -> bool:
    """Return whether mpi4py takes `given` for a number, not for a sequence."""
    try:
        len(given)
    except TypeError:
        return hasattr(given, "__index__")
    return False


def _numbers(given: Any, nblocks: int) -> list[int]:
    """Return a user's counts or displacements, of which each block must have one."""
    numbers = [operator.index(given[index]) for index in range(len(given))]
    if len(numbers) != nblocks:
        # The wording is mpi4py's.
        raise ValueError(f"expecting {nblocks} items, got {len(numbers)}")
    return numbers
