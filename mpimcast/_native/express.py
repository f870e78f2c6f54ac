# SPDX-License-Identifier: BSD-3-Clause
"""Blocking collectives of plain arrays in a node's memory, by the shortest way.

On one node an operation takes a few microseconds, less than it takes to describe any
buffer that mpi4py accepts. So the most common ones, contiguous NumPy arrays of
numbers, go to C at once. All others, and whatever goes wrong, take the ordinary way.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Any

import numpy as np

from mpimcast._core import ffi, lib
from mpimcast._native.operation import SLICE_NS, Description
from mpimcast._support.shared_memory import shared_memory

if TYPE_CHECKING:
    from collections.abc import Callable

    from mpimcast._core import _CData as CData
    from mpimcast._native.calls import AnyStream
    from mpimcast._support.shared_memory import Known, SharedMemory

    # Pointers to where shared memory begins and ends, and that memory.
    _Map = tuple[list[CData], list[CData], list[SharedMemory]]

# The types of numbers in the machine's own byte order.
_NUMBERS = frozenset(np.dtype(code) for code in "?bBhHiIlLqQfdgFDG")

# Found once, since each look-up takes a part of the time that is to be saved.
_NULL = ffi.NULL
_REQUEST = ffi.typeof("struct mmc_node_request **")
_ADDRESS = ffi.typeof("uintptr_t")
_POINTER = ffi.typeof("char *")
cast = ffi.cast
from_buffer = ffi.from_buffer
allgather = lib.mmc_node_allgather
bcast = lib.mmc_node_bcast
start = lib.mmc_node_start

# The key of memory that other processes share than this stream's.
_FOREIGN = -1


class Express:
    """The shortest way to the operations of one node stream.

    Parameters
    ----------
    stream
        The stream, a node stream whose ranks all share memory.
    finish
        Called with the place of a request that has not ended within a slice, or has
        failed, and with the operation's name and arguments. It waits for the request
        and frees it.
    in_place
        The object that stands for MPI_IN_PLACE, as None does.
    members
        The processes of the node.
    """

    def __init__(
        self,
        stream: AnyStream,
        finish: Callable[..., None],
        in_place: object,
        members: frozenset[object],
    ) -> None:
        self._stream = stream.c
        self._nranks = stream.nranks
        self._finish = finish
        self._in_place = in_place
        self._members = members
        self._known: Known = ()
        self._map: _Map = ([], [], [])
        self._barrier = Description("node_barrier", 0)
        self._stopped = False
        # Places for requests; each call takes one, so that threads do not share any.
        self._places: list[CData] = []
        # Whether mpimcast carries blocks, by the number of bits of their size; None
        # where that is not known yet.
        self._allgathers: list[bool | None] = [None] * 65
        self._bcasts: list[bool | None] = [None] * 65

    def take(self, name: str, nbits: int, ours: bool | None) -> None:  # noqa: FBT001
        """Set whether mpimcast carries a collective's blocks of `nbits`-bit sizes."""
        if self._stopped:
            return
        if name == "Allgather":
            self._allgathers[nbits] = ours
        elif name == "Bcast":
            self._bcasts[nbits] = ours

    def take_all(self) -> None:
        """Let mpimcast carry blocks of all sizes."""
        self._allgathers = [True] * 65
        self._bcasts = [True] * 65

    def stop(self) -> None:
        """Leave all operations to the ordinary way from now on."""
        self._stopped = True
        self._allgathers = [None] * 65
        self._bcasts = [None] * 65

    def allgather(self, send: Any, recv: Any) -> bool | None:
        """Run an Allgather; return whether mpimcast has carried it.

        Return None if it has to take the ordinary way.
        """
        if type(recv) is not np.ndarray:
            return None
        ours = self._allgathers[(recv.nbytes // self._nranks).bit_length()]
        if ours or (shared_memory.known and self._holds(recv)):
            return self._run_allgather(send, recv)
        return ours

    def bcast(self, data: Any, root: int) -> bool | None:
        """Run a Bcast; return as `allgather` does."""
        if type(data) is not np.ndarray:
            return None
        ours = self._bcasts[data.nbytes.bit_length()]
        if ours or (shared_memory.known and self._holds(data)):
            return self._run_bcast(data, root)
        return ours

    def run(self, name: str, *arguments: Any) -> bool | None:
        """Run a collective, whoever carries its size; return True if it was run."""
        if self._stopped:
            return None
        if name == "Allgather":
            return self._run_allgather(*arguments)
        return self._run_bcast(*arguments) if name == "Bcast" else None

    def _run_allgather(self, send: Any, recv: Any) -> bool | None:
        """Run an Allgather; return None if it has to take the ordinary way."""
        if type(recv) is not np.ndarray or recv.dtype not in _NUMBERS:
            return None
        block_bytes, rest = divmod(recv.nbytes, self._nranks)
        if rest:
            return None
        source = _NULL
        try:
            if send is not None and send is not self._in_place:
                if (
                    type(send) is not np.ndarray
                    or send.dtype is not recv.dtype
                    or send.nbytes != block_bytes
                ):
                    return None
                source = from_buffer("char[]", send)
            place = from_buffer("char[]", recv, True)  # noqa: FBT003 -- cffi's way
        except (BufferError, ValueError):
            return None  # not contiguous, or read-only
        key = self._key(place) if shared_memory.known and block_bytes else 0
        if key == _FOREIGN:
            return None
        request = self._places.pop() if self._places else ffi.new(_REQUEST)
        try:
            status = allgather(self._stream, source, place, block_bytes, key, request)
            return self._take(status, request, "allgather", send, recv)
        except BaseException:
            self._give_up(request)
            raise

    def _run_bcast(self, data: Any, root: int) -> bool | None:
        """Run a Bcast; return None if it has to take the ordinary way."""
        if (
            type(data) is not np.ndarray
            or data.dtype not in _NUMBERS
            or type(root) is not int
            or not 0 <= root < self._nranks
        ):
            return None
        try:
            place = from_buffer("char[]", data, True)  # noqa: FBT003 -- cffi's way
        except (BufferError, ValueError):
            return None  # not contiguous, or read-only
        key = self._key(place) if shared_memory.known and data.nbytes else 0
        if key == _FOREIGN:
            return None
        request = self._places.pop() if self._places else ffi.new(_REQUEST)
        try:
            status = bcast(self._stream, place, data.nbytes, root, key, request)
            return self._take(status, request, "bcast", data, root)
        except BaseException:
            self._give_up(request)
            raise

    def node_barrier(self) -> bool | None:
        """Run a node barrier; return None if it has to take the ordinary way."""
        if self._stopped:
            return None
        request = self._places.pop() if self._places else ffi.new(_REQUEST)
        try:
            status = start(self._stream, self._barrier.c, SLICE_NS, request)
            return self._take(status, request, "node_barrier")
        except BaseException:
            self._give_up(request)
            raise

    def _holds(self, whole: np.ndarray[Any, Any]) -> bool:
        """Return whether an array lies in shared memory, and may be used here."""
        if self._stopped:
            return False
        try:
            return self._key(from_buffer("char[]", whole)) != 0
        except (BufferError, ValueError):
            return False

    def _key(self, place: CData) -> int:
        """Return what names a result in shared memory; 0 for private memory."""
        known = shared_memory.known
        begins, ends, memories = (
            self._map if known is self._known else self._draw_map(known)
        )
        index = bisect_right(begins, place) - 1
        if index < 0 or place >= ends[index]:
            return 0
        memory = memories[index]
        members = memory.members
        if members is not self._members and members != self._members:
            return _FOREIGN
        if place == begins[index]:
            return memory.number
        return memory.number + int(cast(_ADDRESS, place)) - memory.begin

    def _draw_map(self, known: Known) -> _Map:
        """Return where shared memory lies, in C's pointers, and keep that.

        They are compared in a fifth of the time that it takes to make a number of one.
        """
        memories = known[1] if known else []
        drawn = (
            [cast(_POINTER, each.begin) for each in memories],
            [cast(_POINTER, each.end) for each in memories],
            memories,
        )
        self._map, self._known = drawn, known
        return drawn

    def _take(
        self, status: int, request: CData, name: str, *arguments: Any
    ) -> bool | None:
        """Return True once an operation that was started has ended, else None."""
        if status != 0:
            if request[0] == _NULL:
                return None  # the ordinary way finds out why, and says it
            self._finish(request, name, *arguments)
        self._places.append(request)
        return True

    @staticmethod
    def _give_up(request: CData) -> None:
        """Cancel and free a request that an exception has left, such as Ctrl-C's."""
        if request[0] != _NULL:
            lib.mmc_node_request_cancel(request[0])
            lib.mmc_node_request_free(request[0])
            request[0] = _NULL
