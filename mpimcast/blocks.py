# SPDX-License-Identifier: BSD-3-Clause
"""The place for blocks of several sizes, as users pass it to an Allgatherv.

mpi4py judges all of it but the counts and displacements: there are as many of them
as ranks, but one on ``COMM_SELF``. Those are read here, by mpi4py's rules.
"""

from __future__ import annotations

import operator
from itertools import accumulate
from typing import Any

from mpi4py import MPI

from mpimcast import buffers


class Blocks(buffers.Message):
    """Blocks that need be neither equal nor side by side nor in order.

    Attributes
    ----------
    address : int
        Where the block begins that has the smallest displacement.
    packed : bool
        Whether every block lies in one piece and in the order of its bytes.
    blocks_bytes : list of int
        Bytes of each block, gaps not counted.
    offsets_bytes : list of int
        Where each block begins, from `address` on; 0 for empty ones.
    """

    def __init__(
        self,
        owner: object,
        address: int,
        item: MPI.Datatype | int,
        counts: list[int],
        displacements: list[int],
    ) -> None:
        """Take blocks of items of a type, or of so many bytes each."""
        if isinstance(item, int):
            datatype, size, extent = None, item, item
        else:
            datatype, size, extent = item, item.Get_size(), item.Get_extent()[1]
        pairs = list(zip(counts, displacements, strict=True))
        first = min((place for count, place in pairs if count), default=0)
        super().__init__(
            owner,
            address + first * extent,
            sum(counts) * (size if datatype is None else 1),
            datatype,
        )
        self._counts = counts
        self._displacements = [place - first if count else 0 for count, place in pairs]
        self.blocks_bytes = [count * size for count in counts]
        self.offsets_bytes = [place * extent for place in self._displacements]

    def pack_block(self, index: int, address: int) -> None:
        """Copy one of the blocks, without gaps, to `address`."""
        where = [self._displacements[index]]
        self.copy([self._counts[index]], where, address, out=False)

    def unpack(self, address: int) -> None:
        """Copy all blocks from `address`, where each follows on the one before."""
        self.copy(self._counts, self._displacements, address, out=True)


def receiving(recvbuf: Any, nblocks: int) -> Blocks:
    """Take apart the place for `nblocks` blocks. Raises as mpi4py does."""
    buffer, counts, displacements, datatype = _items(recvbuf)
    if isinstance(datatype, str):
        datatype = MPI.Datatype.fromcode(datatype)
    owner, address, length, extent = buffers.locate(buffer, datatype, "recvbuf")
    if counts is None:
        each, more = divmod(length // extent if length else 0, nblocks)
        counts = [each + (index < more) for index in range(nblocks)]
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


def _items(spec: Any) -> tuple[Any, Any, Any, Any]:
    """Split a message into buffer, counts, displacements and datatype.

    Unlike in a message of equal blocks, only a tuple is counts and displacements:
    a list is counts.
    """
    if not isinstance(spec, list | tuple) or len(spec) not in (2, 3, 4):
        _judge(spec)
        return spec, None, None, None
    buffer, counts, displacements, datatype = (*spec, None, None)[:4]
    if len(spec) == 2 and isinstance(  # noqa: PLR2004 -- [buffer, datatype]
        counts, MPI.Datatype | str
    ):
        counts, datatype = None, counts
    elif len(spec) == 3:  # noqa: PLR2004 -- [buffer, counts, datatype]
        displacements, datatype = None, displacements
    if len(spec) < 4 and isinstance(  # noqa: PLR2004 -- of four it is counts alone
        counts, tuple
    ):
        if len(counts) != 2:  # noqa: PLR2004 -- counts, displacements
            _judge(spec)
        counts, displacements = counts
    _judge([buffer, None if counts is None else 0, datatype])
    return buffer, counts, displacements, datatype


def _judge(spec: Any) -> None:
    buffers.judge(MPI.COMM_SELF.Recv_init, spec)


def _is_number(given: Any) -> bool:
    """Return whether mpi4py takes it for a number, not for a sequence."""
    try:
        len(given)
    except TypeError:
        return hasattr(given, "__index__")
    return False


def _numbers(given: Any, nblocks: int) -> list[int]:
    """Return the numbers of a sequence, of which there is one for each block."""
    numbers = [operator.index(given[index]) for index in range(len(given))]
    if len(numbers) != nblocks:
        # mpi4py's words.
        raise ValueError(f"expecting {nblocks} items, got {len(numbers)}")
    return numbers
