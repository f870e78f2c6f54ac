# SPDX-License-Identifier: BSD-3-Clause
"""Carry out one operation of any kind, in any form, on bytes."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

KINDS = ("Allgather", "Allgatherv", "Bcast")
FORMS = ("blocking", "request", "persistent")

# The gap between the blocks of an Allgatherv.
GAP_BYTES = 3

Bytes = NDArray[np.uint8]


class Exchange:
    """The blocks of one operation, and where each is received.

    Parameters
    ----------
    kind
        One of KINDS.
    nbytes
        The bytes of a block, or their mean where blocks are uneven.
    op
        The operation's number, which determines the root and the larger blocks.
    size
        The number of ranks.

    Attributes
    ----------
    blocks_bytes : list of int
        The bytes of each rank's block.
    place_bytes : int
        The bytes of the whole result, with the gaps.
    """

    def __init__(self, kind: str, nbytes: int, op: int, size: int) -> None:
        self._kind = kind
        self._root = op % size
        self.blocks_bytes = [nbytes] * size
        gap_bytes = 0
        if kind == "Bcast":
            self.blocks_bytes = [nbytes * (each == self._root) for each in range(size)]
        elif kind == "Allgatherv":
            # One rank in four has an empty block, and one a block of twice the size.
            parts = [(op + each) % 4 * 2 // 3 for each in range(size)]
            self.blocks_bytes = [nbytes * part for part in parts]
            gap_bytes = GAP_BYTES
        steps = [each + gap_bytes for each in self.blocks_bytes]
        *self._begins, self.place_bytes = itertools.accumulate(steps, initial=0)

    def block(self, place: Bytes, rank: int) -> Bytes:
        """Return the part of `place` that holds a rank's block."""
        begin = self._begins[rank]
        return place[begin : begin + self.blocks_bytes[rank]]

    def run(
        self, comm: MPI.Intracomm, form: str, mine: Bytes | None, place: Any
    ) -> None:
        """Do the operation; `mine` is None if this rank's block is in place already."""
        sent: Any = MPI.IN_PLACE if mine is None else mine
        arguments: Sequence[Any] = (sent, place)
        if self._kind == "Bcast":
            arguments = (place, self._root)
        elif self._kind == "Allgatherv":
            arguments = (sent, [place, self.blocks_bytes, self._begins, MPI.BYTE])
        if form == "blocking":
            getattr(comm, self._kind)(*arguments)
        elif form == "request":
            getattr(comm, f"I{self._kind.lower()}")(*arguments).Wait()
        else:
            request = getattr(comm, f"{self._kind}_init")(*arguments)
            request.Start()
            request.Wait()
            request.Free()
