# SPDX-License-Identifier: BSD-3-Clause
"""Reads users' buffers as addresses and numbers of bytes.

No other module reads them. mpi4py itself checks every message: to make a persistent
request on ``COMM_SELF`` is local, starts nothing, and raises mpi4py's own errors. This
module then parses the messages that mpi4py accepts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from mpi4py import MPI

from mpimcast._device import accelerators
from mpimcast._device.device import device_of
from mpimcast._device.driver import DRIVERS
from mpimcast._mpi import messages, tensors
from mpimcast._small import Limits
from mpimcast.errors import Error

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class Message:
    """A user's buffer during one operation, of one or more equal blocks.

    The object keeps the user's memory from being freed or moved meanwhile. It holds a
    duplicate of the datatype, since users may free theirs once an operation has begun.

    Attributes
    ----------
    address : int
        The beginning of the data; 0 if there is none.
    nbytes : int
        Bytes of data, gaps not counted.
    packed : bool
        Whether the data lies in one piece and in the order of its bytes.
    item_bytes : int
        Bytes of an item, gaps not counted.
    device : Device or None
        The device whose memory it is, if the host cannot use it.
    array
        The object whose memory it is, if it is that of a device.
    """

    _datatype: MPI.Datatype | None = None

    def __init__(
        self,
        owner: object,
        address: int,
        count: int,
        datatype: MPI.Datatype | None,
        nblocks: int = 1,
    ) -> None:
        self._owner = owner
        self._count = count
        self._nblocks = nblocks
        self.address = address
        self.nbytes = count
        self.item_bytes = 1
        self.packed = True
        if datatype is not None:
            size = datatype.Get_size()
            self.nbytes, self.item_bytes = count * size, size
            self.packed = datatype.is_predefined and datatype.Get_extent() == (0, size)
            if not self.packed:
                self._datatype = datatype.Dup()
        self.device = device_of(address) if self.nbytes else None
        self.array = None if self.device is None else _array_of(owner)
        if self.device is not None and not self.packed:
            raise Error(
                f"data in the memory of a device ({self.device.name}) must have no "
                "gaps, but the datatype of this buffer has some, or another order of "
                "bytes: make it contiguous on the device first"
            )

    def __del__(self) -> None:
        """Free the duplicate of the datatype unless MPI has ended."""
        if self._datatype is not None and not MPI.Is_finalized():
            self._datatype.Free()

    def pack(self, address: int) -> None:
        """Copy the data, without gaps, to `address`."""
        self.copy([self._count], [0], address, out=False)

    def pack_block(self, index: int, address: int) -> None:
        """Copy block `index` to `address`, without gaps."""
        count = self._count // self._nblocks
        self.copy([count], [index * count], address, out=False)

    def unpack(self, address: int) -> None:
        """Copy the data from `address`, where it has no gaps; leave gaps here alone."""
        self.copy([self._count], [0], address, out=True)

    def copy(
        self,
        counts: Sequence[int],
        displacements: Sequence[int],
        address: int,
        *,
        out: bool,
    ) -> None:
        """Copy the items at `displacements` to `address`, or from it if `out`.

        The items lie without gaps at `address`. MPI's Pack and Unpack infer a count
        from the length of a buffer, which fails where items overlap or the last ends
        before its extent does. So one item of a new type, relative to a byte of our
        own, stands for all of the data.
        """
        if self._datatype is None or self.nbytes == 0:
            return
        nbytes = sum(counts) * self._datatype.Get_size()
        if nbytes == 0:
            return
        packed = MPI.buffer.fromaddress(address, nbytes)
        anchor = bytearray(1)
        begin = self.address - MPI.Get_address(anchor)
        extent = self._datatype.Get_extent()[1]
        items = self._datatype.Create_hindexed(
            counts, [begin + first * extent for first in displacements]
        )
        item = items.Create_resized(0, 1)
        item.Commit()
        try:
            if out:
                end = item.Unpack(packed, 0, anchor, MPI.COMM_SELF)
            else:
                end = item.Pack(anchor, packed, 0, MPI.COMM_SELF)
        finally:
            item.Free()
            items.Free()
        if end != nbytes:
            raise Error(f"the MPI library packed {nbytes} bytes into {end}")


def is_in_place(sendbuf: object) -> bool:
    """Return whether a send buffer means MPI_IN_PLACE."""
    return sendbuf is None or sendbuf is MPI.IN_PLACE


def judge(init: Callable[[Any, int], MPI.Prequest], spec: Any) -> None:
    """Raise as mpi4py does, but accept more items than the MPI library can count.

    Blocks whose items the library can count one by one may together have too many
    items, but the library never has to count them together.
    """
    try:
        init(spec, 0).Free()
    except MPI.Exception as error:
        if error.Get_error_class() != MPI.ERR_ARG:
            raise


def refuse(act: Callable[..., None], *arguments: Any, error: int) -> NoReturn:
    """Let the MPI library refuse arguments that are also wrong on ``COMM_SELF``.

    The error is then in the library's own words. If the library does not check the
    arguments, raise an MPI.Exception with `error`, as other libraries do.
    """
    act(*arguments)
    raise MPI.Exception(error)


def sending(sendbuf: Any) -> Message:
    """Parse a send buffer. Raises as mpi4py does."""
    judge(MPI.COMM_SELF.Send_init, sendbuf)
    return _take(sendbuf, 1)


def receiving(recvbuf: Any, nblocks: int) -> Message:
    """Parse a receive buffer for `nblocks` equal blocks. Raises as mpi4py does.

    A count, if one is given, is that of one block.
    """
    judge(MPI.COMM_SELF.Recv_init, recvbuf)
    return _take(recvbuf, nblocks)


def _take(spec: Any, nblocks: int) -> Message:
    buffer, count, displacement, datatype = messages.split(spec, (list, tuple))
    if isinstance(datatype, str):
        datatype = MPI.Datatype.fromcode(datatype)
    owner, address, length, extent = locate(buffer, datatype)
    if displacement is not None:
        address += int(displacement) * extent
        length -= int(displacement) * extent
    if count is not None:
        nitems = int(count) * nblocks
    else:
        nitems = length // extent if length else 0
        if nitems % nblocks:
            # The wording is mpi4py's, whose Recv_init knows of no blocks.
            raise ValueError(
                f"message: cannot infer count, number of entries {nitems} is not a "
                f"multiple of required number of blocks {nblocks}"
            )
    if datatype is None:
        message = Message(owner, address, nitems * extent, None, nblocks)
        message.item_bytes = extent
        return message
    return Message(owner, address, nitems, datatype, nblocks)


def locate(buffer: Any, datatype: MPI.Datatype | None) -> tuple[object, int, int, int]:
    """Return a buffer's owner, its address, its bytes, and the bytes of an item."""
    owner, address, length, item_bytes = None, 0, 0, 1
    if buffer is not None and buffer is not MPI.BOTTOM:
        owner, address, length, item_bytes = _memory(buffer)
    if datatype is None:
        return owner, address, length, item_bytes
    return owner, address, length, datatype.Get_extent()[1]


def _memory(buffer: Any) -> tuple[object, int, int, int]:
    """Return a contiguous buffer's owner, address, bytes, and bytes of an item."""
    if isinstance(buffer, MPI.buffer):
        # mpi4py counts its items as bytes, whatever array it was made from.
        return buffer, buffer.address, buffer.nbytes, 1
    try:
        view = memoryview(buffer)
    except Exception:  # noqa: BLE001 -- mpi4py tries other protocols after any
        memory = MPI.buffer.frombuffer(buffer, readonly=True)
        item_bytes = tensors.item_bytes(memory.obj)
        return (buffer, memory), memory.address, memory.nbytes, item_bytes
    return view, MPI.Get_address(buffer), view.nbytes, view.itemsize


class Whole(NamedTuple):
    """A whole buffer: its array, its address, its bytes, and those of an item."""

    array: Any
    address: int
    nbytes: int
    item_bytes: int


def whole(buffer: Any) -> Whole:
    """Return the whole of a buffer."""
    owner, address, nbytes, item_bytes = _memory(buffer)
    return Whole(_array_of(owner), address, nbytes, item_bytes)


def _array_of(owner: Any) -> Any:
    """Return the array to which memory belongs; it knows its device's stream."""
    if isinstance(owner, tuple):
        owner, _ = owner
    while isinstance(owner, memoryview | MPI.buffer):
        owner = owner.obj
    return owner


def lies_on_device(message: Any) -> bool:
    """Return whether a message is in memory that only a device of `DRIVERS` can use.

    The message has any form that mpi4py takes; other objects are in no such memory.
    """
    if not accelerators.loaded():
        return False
    is_list = isinstance(message, list | tuple) and len(message) > 0
    try:
        address = MPI.Get_address(message[0] if is_list else message)
    except Exception:  # noqa: BLE001 -- no buffer, as mpi4py will say itself
        return False
    found = accelerators.holder(address)
    return found is not None and found.name in DRIVERS


Limits.heed_devices(MPI.buffer, lies_on_device)
