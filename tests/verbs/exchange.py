# SPDX-License-Identifier: BSD-3-Clause
"""One operation of any kind, in any form, on bytes."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

KINDS = ("Allgather", "Allgatherv", "Bcast")
FORMS = ("blocking", "request", "persistent")

# Between the blocks of an Allgatherv.
GAP_BYTES = 3

Bytes = NDArray[np.uint8]


class Exchange:
    """What ranks send in an operation, and where that is received.

    Parameters
    ----------
    kind
        One of KINDS.
    nbytes
        Of a block, or the mean of them where they are uneven.
    op
        The operation's number: what the root, and who has more, depend on.
    size
        How many ranks.

    Attributes
    ----------
    blocks_bytes : list of int
        By rank.
    place_bytes : int
        Bytes that blocks reach over, with the gaps.
    """

    def __init__(self, kind: str, nbytes: int, op: int, size: int) -> None:
        self._kind = kind
        self._root = op % size
        self.blocks_bytes = [nbytes] * size
        gap_bytes = 0
        if kind == "Bcast":
            self.blocks_bytes = [nbytes * (each == self._root) for each in range(size)]
        elif kind == "Allgatherv":
            # Of four ranks one has nothing and one has twice as much.
            parts = [(op + each) % 4 * 2 // 3 for each in range(size)]
            self.blocks_bytes = [nbytes * part for part in parts]
            gap_bytes = GAP_BYTES
        steps = [each + gap_bytes for each in self.blocks_bytes]
        *self._begins, self.place_bytes = itertools.accumulate(steps, initial=0)

    def block(self, place: Bytes, rank: int) -> Bytes:
        """Return a rank's part of a place."""
        begin = self._begins[rank]
        return place[begin : begin + self.blocks_bytes[rank]]

    def run(
        self, comm: MPI.Intracomm, form: str, mine: Bytes | None, place: Any
    ) -> None:
        """Do it; `mine` is None if it lies in its place, as of a Bcast's root."""
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
