# SPDX-License-Identifier: BSD-3-Clause
"""The collectives, each with its buffers: what is packed, moved and unpacked.

An operation judges its buffers when it is made and may then be run many times, one
run after the other. What decides its way is the same on all ranks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mpi4py import MPI

from mpimcast import buffers
from mpimcast.errors import Error

if TYPE_CHECKING:
    from mpimcast import flight


class Staging:
    """Memory of our own, which grows to what its operations need."""

    def __init__(self) -> None:
        self._memory = MPI.buffer.allocate(0)

    def need(self, nbytes: int) -> int:
        """Return the address of at least so many bytes."""
        if self._memory.nbytes < nbytes:
            self._memory = MPI.buffer.allocate(nbytes)
        return self._memory.address


class Allgather:
    """Every rank's block to all ranks, in rank order.

    Attributes
    ----------
    nbytes : int
        What decides the way: bytes of a block.
    """

    def __init__(self, comm: MPI.Intracomm, sendbuf: Any, recvbuf: Any) -> None:
        self._rank, self._size = comm.Get_rank(), comm.Get_size()
        self._recv = buffers.receiving(recvbuf, self._size)
        self.nbytes = self._recv.nbytes // self._size
        self._send = None
        if not buffers.is_in_place(sendbuf):
            self._send = buffers.sending(sendbuf)
            if self._send.nbytes != self.nbytes:
                raise Error(
                    f"rank {self._rank} of {self._size} sends {self._send.nbytes} "
                    f"bytes, but recvbuf has {self.nbytes} bytes for each rank"
                )

    def __str__(self) -> str:
        """Say what it is, for messages."""
        return f"Allgather of {self.nbytes} bytes a rank"

    def moves(self, *, tells: bool = False) -> flight.Moves:
        """Return what C needs to know."""
        from mpimcast import flight

        return flight.Moves("allgather", self.nbytes, tells=tells)

    def pack(self, moves: flight.Moves, staging: Staging) -> None:
        """Make the data ready to be sent, and say where it lies."""
        recv, send = self._recv, self._send
        place = recv.address if recv.packed else staging.need(recv.nbytes)
        own = place + self._rank * self.nbytes
        source = None
        if send is None:
            if not recv.packed:
                recv.pack_block(self._rank, self._size, own)
        elif not send.packed:
            send.pack(own)
        elif send.address != own:
            source = send.address
        moves.at(source, place)

    def unpack(self, staging: Staging) -> None:
        """Bring what was received to its place."""
        if not self._recv.packed:
            self._recv.unpack(staging.need(self._recv.nbytes))
