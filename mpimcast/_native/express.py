# SPDX-License-Identifier: BSD-3-Clause
"""Blocking collectives of plain arrays in a node's memory, by the shortest way.

On one node an operation takes a few microseconds, less than it takes to describe any
buffer that mpi4py accepts. So the most common ones, contiguous NumPy arrays of
numbers, go to C at once. All others, and whatever goes wrong, take the ordinary way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mpimcast._core import ffi, lib
from mpimcast._native.operation import SLICE_NS

if TYPE_CHECKING:
    from collections.abc import Callable

    from mpimcast._core import _CData as CData
    from mpimcast._native.node import NodeStream

# The types of numbers in the machine's own byte order.
_NUMBERS = frozenset(np.dtype(code) for code in "?bBhHiIlLqQfdgFDG")

# Found once, since each look-up takes a part of the time that is to be saved.
_NULL = ffi.NULL
_REQUEST = ffi.typeof("struct mmc_node_request **")
from_buffer = ffi.from_buffer
allgather = lib.mmc_node_allgather
bcast = lib.mmc_node_bcast


class Express:
    """The shortest way to the operations of one node stream.

    Parameters
    ----------
    stream
        The stream. Between nodes, whose operations take longer, there is no such way.
    finish
        Called with the place of a request that has not ended within a slice, or has
        failed, and with the operation's name and arguments. It waits for the request
        and frees it.
    in_place
        The object that stands for MPI_IN_PLACE, as None does.
    """

    def __init__(
        self, stream: NodeStream, finish: Callable[..., None], in_place: object
    ) -> None:
        self._stream = stream.c
        self._nranks = stream.nranks
        self._finish = finish
        self._in_place = in_place
        self._stopped = False
        # Places for requests; each call takes one, so that threads do not share any.
        self._places: list[CData] = []

    def stop(self) -> None:
        """Leave all operations to the ordinary way from now on."""
        self._stopped = True

    def allgather(self, send: Any, recv: Any) -> bool:
        """Run an Allgather; return False if it has to take the ordinary way."""
        if self._stopped or type(recv) is not np.ndarray or recv.dtype not in _NUMBERS:
            return False
        block_bytes, rest = divmod(recv.nbytes, self._nranks)
        if rest:
            return False
        source = _NULL
        try:
            if send is not None and send is not self._in_place:
                if (
                    type(send) is not np.ndarray
                    or send.dtype is not recv.dtype
                    or send.nbytes != block_bytes
                ):
                    return False
                source = from_buffer("char[]", send)
            place = from_buffer("char[]", recv, True)  # noqa: FBT003 -- cffi's way
        except (BufferError, ValueError):
            return False  # not contiguous, or read-only
        request = self._places.pop() if self._places else ffi.new(_REQUEST)
        try:
            status = allgather(
                self._stream, source, place, block_bytes, SLICE_NS, request
            )
            return self._take(status, request, "allgather", send, recv)
        except BaseException:
            self._give_up(request)
            raise

    def bcast(self, data: Any, root: int) -> bool:
        """Run a Bcast; return False if it has to take the ordinary way."""
        if (
            self._stopped
            or type(data) is not np.ndarray
            or data.dtype not in _NUMBERS
            or type(root) is not int
            or not 0 <= root < self._nranks
        ):
            return False
        try:
            place = from_buffer("char[]", data, True)  # noqa: FBT003 -- cffi's way
        except (BufferError, ValueError):
            return False  # not contiguous, or read-only
        request = self._places.pop() if self._places else ffi.new(_REQUEST)
        try:
            status = bcast(self._stream, place, data.nbytes, root, SLICE_NS, request)
            return self._take(status, request, "bcast", data, root)
        except BaseException:
            self._give_up(request)
            raise

    def _take(self, status: int, request: CData, name: str, *arguments: Any) -> bool:
        """Return whether an operation was started, once it has ended."""
        if status != 0:
            if request[0] == _NULL:
                return False  # the ordinary way finds out why, and says it
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
