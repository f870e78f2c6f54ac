# SPDX-License-Identifier: BSD-3-Clause
"""Do one operation on bytes: any collective of KINDS in any form of FORMS."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

KINDS = ("Allgather", "Allgatherv", "Bcast")
FORMS = ("blocking", "request", "persistent", "partial")

# The gap after each block of an Allgatherv.
GAP_BYTES = 3

Bytes = NDArray[np.uint8]


class Exchange:
    """One operation: the size of each block, and where it is received.

    Parameters
    ----------
    kind
        One of KINDS.
    nbytes
        The bytes of a block. An Allgatherv's blocks have this number, none, or twice as
        many.
    op
        The operation's number. It determines a Bcast's root, and the ranks that have
        larger blocks in an Allgatherv.
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
            # Blocks have these multiples of `nbytes` in turn.
            multiples = [0, 0, 1, 2]
            self.blocks_bytes = [
                nbytes * multiples[(op + each) % 4] for each in range(size)
            ]
            gap_bytes = GAP_BYTES
        steps = [each + gap_bytes for each in self.blocks_bytes]
        *self._begins, self.place_bytes = itertools.accumulate(steps, initial=0)

    def block(self, place: Bytes, rank: int) -> Bytes:
        """Return the part of the whole result `place` that has a rank's block."""
        begin = self._begins[rank]
        return place[begin : begin + self.blocks_bytes[rank]]

    def _take_blocks(self, request: Any, place: Any) -> None:
        """Wait, and check that no block changes after it has landed."""
        landed = {}
        # The MPI library's own requests have no blocks.
        for rank in request.blocks() if hasattr(request, "blocks") else ():
            landed[rank] = np.array(self.block(place, rank))
        request.Wait()
        for rank, block in landed.items():
            if not np.array_equal(block, self.block(place, rank)):
                raise AssertionError(f"the block of rank {rank} changed after landing")

    def run(
        self, comm: MPI.Intracomm, form: str, mine: Bytes | None, place: Any
    ) -> None:
        """Do the operation, and return when it is complete.

        Parameters
        ----------
        comm
            A communicator of mpimcast or of the MPI library.
        form
            One of FORMS.
        mine
            This rank's block; None if it is already in `place`.
        place
            Memory for the whole result.
        """
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
        elif form == "partial":
            request = getattr(comm, f"I{self._kind.lower()}")(*arguments)
            self._take_blocks(request, place)
        else:
            request = getattr(comm, f"{self._kind}_init")(*arguments)
            request.Start()
            request.Wait()
            request.Free()
