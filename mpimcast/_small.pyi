# SPDX-License-Identifier: BSD-3-Clause
# What small calls need in C; see ffi/python.

from _thread import LockType
from collections.abc import Callable, Sequence
from typing import Any

from mpi4py import MPI
from typing_extensions import Self

# ---- limits.c ----------------------------------------------------------------

# The size in bytes of each predefined datatype, by the id of its object.
TYPE_SIZES: dict[int, int]

# The sizes below which the MPI library carries a collective; 0 at first. Each method
# for a form of message returns whether that is certainly below them.
class Limits:
    # A message of one block, as of a Bcast.
    def small_block(self, message: object, /) -> bool: ...
    # Equal blocks, one of each rank, as of an Allgather.
    def small_blocks(self, message: object, /) -> bool: ...
    # Blocks that may have different counts, as of an Allgatherv.
    def small_vector(self, message: object, /) -> bool: ...
    # From the first call on, each asks `function` of a message that is below whether it
    # is not the MPI library's nevertheless.
    @staticmethod
    def hold_back(function: Callable[[object], bool], /) -> None: ...
    # Returns how many messages were below the limits, and the MPI library's.
    def nsmall(self) -> int: ...
    # Sets the limits of a whole result and of a block.
    def set(self, result_bytes: int, block_bytes: int, /) -> None: ...

# ---- sealing.c ---------------------------------------------------------------

ALLGATHER_HEADER_BYTES: int

# To be called before all that follows.
def prepare(pickler: MPI.Pickle, frombuffer: Callable[..., MPI.buffer], /) -> None: ...

# Pickles an object. Returns a header that contains the pickle, if that fits, is below
# `small_bytes`, and has no buffers beside it; else the pickle and the buffers.
def seal(
    obj: object, small_bytes: int, /
) -> bytes | tuple[bytes, Sequence[MPI.buffer]]: ...

# Returns whether all headers contain pickles.
def are_short(headers: bytearray, /) -> bool: ...

# Returns the bytes of the pickles that follow the headers, 0 where a header is short;
# or None if anything else follows.
def announced(headers: bytearray, /) -> list[int] | None: ...

# Returns the objects whose pickles are in the headers, or follow them.
def unseal(headers: bytearray, pickles: bytearray, /) -> list[Any]: ...

# ---- bcast.c -----------------------------------------------------------------

BCAST_HEADER_BYTES: int

class Bcast:
    def __new__(cls, function: Callable[..., None], lock: LockType, /) -> Self: ...
    # Sends an object to all ranks, and returns it in a tuple, if its pickle is below
    # `small_bytes` and has no buffers beside it. Otherwise the root returns the pickle
    # and the buffers, or None and what pickling has raised, and has sent nothing. Other
    # ranks return None and the header, which says what follows; they still hold the
    # lock.
    def run(
        self, comm: MPI.Intracomm, obj: object, root: int, small_bytes: int, /
    ) -> tuple[Any, ...]: ...
