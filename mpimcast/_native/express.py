# SPDX-License-Identifier: BSD-3-Clause
"""Opens the express way of a stream: its blocking collectives cross to C once.

Small operations take a few microseconds, less than it takes to describe any buffer that
mpi4py accepts. So the most common buffers go to C at once; see ffi/python/express.h.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mpimcast._core import ffi, lib
from mpimcast._native.operation import SLICE_NS
from mpimcast._support.shared_memory import shared_memory

if TYPE_CHECKING:
    from collections.abc import Callable

    from mpimcast._core import _CData as CData
    from mpimcast._native.calls import AnyStream
    from mpimcast._small import Express

# The types of numbers in the machine's own byte order that mpi4py knows.
_NUMBERS = tuple(map(np.dtype, "dfBliqbLQIhH?gFDG"))

# The key of memory that other processes share than this stream's.
_FOREIGN = -1


def begin(
    express: Express,
    stream: AnyStream,
    members: frozenset[object],
    in_place: object,
    calls: tuple[Callable[..., None], Callable[[], bool]],
) -> None:
    """Let the express way go through a stream.

    Parameters
    ----------
    express
        The express way.
    stream
        The stream.
    members
        The processes of the stream's node; empty if none share memory.
    in_place
        The object that stands for MPI_IN_PLACE, as None does.
    calls
        What C calls: ``finish`` with the address of the place of a request, to wait for
        the request and free it, and with the operation's name and arguments; ``watch``
        when multicast was suspended or resumed, which returns whether it is.
    """

    def find_key(address: int) -> int:
        memory = shared_memory.find(address)
        if memory is None:
            return 0
        if memory.members != members:
            return _FOREIGN
        return memory.number + address - memory.begin

    finish, watch = calls
    between = stream.between
    functions = (*stream.calls.names, "mmc_stream_unicast_epoch")
    express.begin(
        (
            _address(stream.c),
            0 if between is None else _address(between.c),
            *(_address(ffi.addressof(lib, name)) for name in functions),
        ),
        (SLICE_NS, stream.rank, stream.nranks),
        (np.ndarray, _NUMBERS, shared_memory, in_place),
        (finish, find_key, watch),
    )


def place_of(stream: AnyStream, address: int) -> CData:
    """Return the place of a request of a stream that lies at an address."""
    return ffi.cast(stream.calls.request, address)


def _address(pointer: CData) -> int:
    return int(ffi.cast("uintptr_t", pointer))
