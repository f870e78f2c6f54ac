# SPDX-License-Identifier: BSD-3-Clause
"""The collectives with their buffers: what each packs, moves and unpacks.

A collective checks its buffers when it is made, and may then be run many times, one
run after the other. The size that decides what carries it is equal on all ranks.
"""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, Any, Protocol

from mpi4py import MPI

from mpimcast._mpi import blocks, buffers
from mpimcast._session.ends import Ends
from mpimcast._session.places import Places
from mpimcast._support.shared_memory import PRIVATE, Target, shared_memory
from mpimcast.errors import Error

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mpimcast._native.operation import Description


class Staging:
    """Staging memory, which grows to the size that its operations need."""

    def __init__(self) -> None:
        self._memory = MPI.buffer.allocate(0)

    def need(self, nbytes: int) -> int:
        """Return the address of at least `nbytes` bytes."""
        if self._memory.nbytes < nbytes:
            self._memory = MPI.buffer.allocate(nbytes)
        return self._memory.address


class Collective(Protocol):
    """The interface of every collective.

    Attributes
    ----------
    nbytes : int
        Bytes of a block, or of an average block. They decide whether mpimcast or the
        MPI library carries the collective.
    total_bytes : int
        Bytes of the whole result.
    target : Target
        The memory that the result goes to.
    ends : Ends
        Where the data comes from and goes to on this rank.
    """

    nbytes: int
    total_bytes: int
    target: Target
    ends: Ends

    def describe(self, *, notifies: bool = False) -> Description:
        """Return the operation's description for C."""

    def places(self) -> Places:
        """Return where the blocks of the result lie."""

    def pack(self, description: Description, staging: Staging) -> None:
        """Pack the data where needed, and set in `description` where it lies."""

    def unpack(self, staging: Staging) -> None:
        """Unpack received data from staging memory where needed."""


class _Gathering:
    """The common part of the collectives that send all ranks' blocks to all ranks.

    Parameters
    ----------
    comm, sendbuf
        The user's communicator and send buffer.
    recv
        The receive buffer for all blocks.
    own_bytes
        Bytes of this rank's block.
    own_offset_bytes
        The offset of this rank's block in `recv`, or in staging memory if `recv` is
        not packed.
    """

    # The offsets of all blocks; None for equal blocks, one after the other.
    _offsets_bytes: Sequence[int] | None = None

    def __init__(
        self,
        comm: MPI.Intracomm,
        sendbuf: Any,
        recv: buffers.Message,
        own_bytes: int,
        own_offset_bytes: int,
    ) -> None:
        self._rank, self._size = comm.Get_rank(), comm.Get_size()
        self._recv = recv
        self._own_offset_bytes = own_offset_bytes
        self._send = None
        self.total_bytes = recv.nbytes
        self.target = _target(
            recv, self._offsets_bytes, in_place=buffers.is_in_place(sendbuf)
        )
        if not buffers.is_in_place(sendbuf):
            self._send = buffers.sending(sendbuf)
            if self._send.nbytes != own_bytes:
                raise Error(
                    f"rank {self._rank} of {comm.Get_size()} sends "
                    f"{self._send.nbytes} bytes, but recvbuf has {own_bytes} bytes "
                    "for its block"
                )
        self.ends = Ends(self._rank, self._send, recv)

    def pack(self, description: Description, staging: Staging) -> None:
        """Pack the data where needed, and set in `description` where it lies."""
        recv, send = self._recv, self._send
        place = recv.address if recv.packed else staging.need(recv.nbytes)
        own = place + self._own_offset_bytes
        source = None
        if send is None:
            if not recv.packed:
                recv.pack_block(self._rank, own)
        elif self.target.memory is not None or self.ends.on_device():
            # Only C knows when this rank may write to memory that others may read. And
            # nobody but the device can write to its memory.
            source = send.address or own
            if not send.packed:
                source = staging.need(send.nbytes)
                send.pack(source)
        elif not send.packed:
            send.pack(own)
        elif send.address != own:
            source = send.address
        description.set_addresses(source, place, self._offsets_bytes)

    def unpack(self, staging: Staging) -> None:
        """Unpack received data from staging memory where needed."""
        if not self._recv.packed:
            self._recv.unpack(staging.need(self._recv.nbytes))


class Allgather(_Gathering):
    """Sends every rank's block to all ranks, in rank order."""

    def __init__(self, comm: MPI.Intracomm, sendbuf: Any, recvbuf: Any) -> None:
        size = comm.Get_size()
        recv = buffers.receiving(recvbuf, size)
        self.nbytes = recv.nbytes // size
        super().__init__(
            comm, sendbuf, recv, self.nbytes, comm.Get_rank() * self.nbytes
        )

    def __str__(self) -> str:
        """Return the operation's description for messages."""
        return f"Allgather of {self.nbytes} bytes a rank"

    def describe(self, *, notifies: bool = False) -> Description:
        """Return the operation's description for C."""
        from mpimcast._native.operation import Description

        return Description(
            "allgather", self.nbytes, notifies=notifies, target=self.target
        )

    def places(self) -> Places:
        """Return where the blocks of the result lie."""
        recv, ranks = self._recv, range(self._size)
        return Places(ranks, self._rank, recv.item_bytes, recv.packed, self.nbytes)


class Allgatherv(_Gathering):
    """Sends every rank's block, each of its own size, to all ranks."""

    def __init__(self, comm: MPI.Intracomm, sendbuf: Any, recvbuf: Any) -> None:
        rank, size = comm.Get_rank(), comm.Get_size()
        recv = blocks.receiving(recvbuf, size)
        self.nbytes = recv.nbytes // size
        self._blocks_bytes, self._begin_bytes = recv.blocks_bytes, recv.begin_bytes
        self._offsets_bytes = recv.offsets_bytes
        if not recv.packed:
            self._offsets_bytes = [0, *accumulate(recv.blocks_bytes[:-1])]
        super().__init__(
            comm, sendbuf, recv, recv.blocks_bytes[rank], self._offsets_bytes[rank]
        )

    def __str__(self) -> str:
        """Return the operation's description for messages."""
        return f"Allgatherv of {self._recv.nbytes} bytes in all"

    def describe(self, *, notifies: bool = False) -> Description:
        """Return the operation's description for C."""
        from mpimcast._native.operation import Description

        return Description(
            "allgatherv", self._blocks_bytes, notifies=notifies, target=self.target
        )

    def places(self) -> Places:
        """Return where the blocks of the result lie."""
        recv, sizes = self._recv, self._blocks_bytes
        begin = self._begin_bytes if recv.packed else 0
        return Places(
            range(len(sizes)),
            self._rank,
            recv.item_bytes,
            recv.packed,
            sizes,
            [begin + offset for offset in self._offsets_bytes or ()],
        )


class Bcast:
    """Sends the root's data to all ranks."""

    def __init__(self, comm: MPI.Intracomm, buf: Any, root: Any) -> None:
        if not (hasattr(root, "__int__") and 0 <= int(root) < comm.Get_size()):
            buffers.refuse(MPI.COMM_SELF.Bcast, buf, root, error=MPI.ERR_ROOT)
        self._root, self._rank = int(root), comm.Get_rank()
        self._sends = comm.Get_rank() == self._root
        self._data = buffers.sending(buf) if self._sends else buffers.receiving(buf, 1)
        self.nbytes = self.total_bytes = self._data.nbytes
        self.target = _target(self._data)
        self.ends = Ends(0 if self._sends else None, None, self._data)

    def __str__(self) -> str:
        """Return the operation's description for messages."""
        return f"Bcast of {self.nbytes} bytes from rank {self._root}"

    def describe(self, *, notifies: bool = False) -> Description:
        """Return the operation's description for C."""
        from mpimcast._native.operation import Description

        return Description(
            "bcast",
            self.nbytes,
            root=self._root,
            notifies=notifies,
            target=self.target,
        )

    def places(self) -> Places:
        """Return where the blocks of the result lie."""
        root, data = self._root, self._data
        is_direct = self._sends or data.packed
        ranks = range(root, root + 1)
        return Places(ranks, self._rank, data.item_bytes, is_direct, self.nbytes)

    def pack(self, description: Description, staging: Staging) -> None:
        """Pack the data where needed, and set in `description` where it lies."""
        data = self._data
        place = data.address if data.packed else staging.need(data.nbytes)
        if self._sends and not data.packed:
            data.pack(place)
        description.set_addresses(None, place)

    def unpack(self, staging: Staging) -> None:
        """Unpack received data from staging memory where needed."""
        if not self._sends and not self._data.packed:
            self._data.unpack(staging.need(self._data.nbytes))


class NodeBarrier:
    """Ends on a rank once all ranks of its node have started it; moves no data."""

    nbytes = total_bytes = 0
    target = PRIVATE
    ends = Ends()

    def __str__(self) -> str:
        """Return the operation's description for messages."""
        return "node_barrier"

    def describe(self, *, notifies: bool = False) -> Description:
        """Return the operation's description for C."""
        from mpimcast._native.operation import Description

        return Description("node_barrier", 0, notifies=notifies)

    def places(self) -> Places:
        """Return that there are no blocks."""
        return Places(range(0), 0, 1, is_direct=True, blocks_bytes=0)

    def pack(self, description: Description, staging: Staging) -> None:
        """Do nothing: there is no data."""

    def unpack(self, staging: Staging) -> None:
        """Do nothing: there is no data."""


def _target(
    recv: buffers.Message,
    offsets_bytes: Sequence[int] | None = None,
    *,
    in_place: bool = False,
) -> Target:
    """Return the memory that a result goes to; raise Error if it cannot go there."""
    target = shared_memory.target(
        recv.address, recv.nbytes, offsets_bytes=offsets_bytes, in_place=in_place
    )
    if target.memory is not None and not recv.packed:
        raise Error(
            "a result in memory that ranks share must have no gaps, but the datatype "
            "of this one has some, or another order of bytes: gather into private "
            "memory, and unpack it from there"
        )
    return target
