# SPDX-License-Identifier: BSD-3-Clause
# What small calls need in C; see ffi/python.

from _thread import LockType
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
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
    # Names the class of mpi4py's buffers, which may show a device's memory. From then
    # on each asks `function` of a message that is below, unless that is certainly in
    # the host's memory, whether it is in a device's; then it does not count as below.
    @staticmethod
    def heed_devices(
        buffer_type: type, function: Callable[[object], bool], /
    ) -> None: ...
    # Returns how many messages were below the limits, and the MPI library's.
    def nsmall(self) -> int: ...
    # Sets the limits of a whole result and of a block.
    def set(self, result_bytes: int, block_bytes: int, /) -> None: ...

# ---- loaded.c ----------------------------------------------------------------

# Returns how many libraries this process has loaded so far; it never falls.
def nloaded() -> int: ...

# ---- bell.c ------------------------------------------------------------------

# Returns the address of a C function that takes the address of a 32-bit number. It sets
# the number to 1 and wakes `listen`; it needs no lock of Python's.
def bell() -> int: ...

# Sleeps until that function has not been called `nheard` times in all; returns how
# often it was.
def listen(nheard: int, /) -> int: ...

# ---- express.c ---------------------------------------------------------------

# The express way of one communicator. Each method for a collective takes the
# communicator and the collective's arguments; it returns True once it has carried the
# call, and False if the call has to take the ordinary way.
class Express:
    # `limits`, below which the MPI library carries a collective, and its functions.
    def __new__(
        cls,
        limits: Limits,
        allgather: Callable[..., None],
        bcast: Callable[..., None],
        /,
    ) -> Self: ...
    def allgather(
        self, comm: MPI.Intracomm, sendbuf: object, recvbuf: object, /
    ) -> bool: ...
    def bcast(self, comm: MPI.Intracomm, buf: object, root: object, /) -> bool: ...
    # Likewise, but mpimcast carries the call whatever its size, and does not count it.
    def run_allgather(
        self, comm: MPI.Intracomm, sendbuf: object, recvbuf: object, /
    ) -> bool: ...
    def run_bcast(self, comm: MPI.Intracomm, buf: object, root: object, /) -> bool: ...
    def run_node_barrier(self) -> bool: ...
    # Sets who carries a class of sizes: 0 not known, 1 mpimcast, 2 the MPI library, 3
    # either of these, in trials. The call of that number takes the ordinary way
    # nevertheless. A collective is 0, an Allgather, or 1, a Bcast.
    def take(
        self, collective: int, nbits: int, carrier: int, next_look: int, /
    ) -> None: ...
    # Sets who carries all sizes of both.
    def take_all(self, carrier: int, /) -> None: ...
    # Counts a call of a class that did not take this way; returns how many there were.
    def count_call(self, collective: int, nbits: int, /) -> int: ...
    # Returns how long the latest trial of a class took here if not all ranks know that
    # yet, otherwise 0; the caller tells them.
    def take_untold(self, collective: int, nbits: int, /) -> int: ...
    # Keeps how long a trial took that did not take this way.
    def keep_untold(self, collective: int, nbits: int, took_ns: int, /) -> None: ...
    # Returns how many calls mpimcast has carried and their nanoseconds, then the same
    # of the MPI library.
    def counts(self) -> tuple[int, int, int, int]: ...
    # Likewise of trials, which `counts` leaves out.
    def trial_counts(self) -> tuple[int, int, int, int]: ...
    # Begins the way. The addresses are those of the stream, of the stream between nodes
    # or 0, and of C's functions to start, cancel and free a request, and for the epoch
    # of a suspension. The numbers are the nanoseconds of a slice, the rank, and how
    # many ranks there are. See mpimcast/_native/express.py for all that follows.
    def begin(
        self,
        addresses: tuple[int, ...],
        numbers: tuple[int, int, int],
        objects: tuple[type, tuple[object, ...], object, object],
        functions: tuple[Callable[..., None], Callable[[int], int], Callable[[], bool]],
        /,
    ) -> None: ...
    # Allows trials, once the way has begun. In `times_ns`, 64 bits for each rank, all
    # ranks tell each other how long the latest trial of a class took them. Then C calls
    # `begin` with the collective, the bits of its sizes and the longest time, 0 if
    # there is none; it counts the call, and returns its carrier. If the class is still
    # to be measured, the call is a trial. C calls `run` with the collective and its two
    # arguments if mpimcast is to carry it and C cannot start it.
    def measure(
        self,
        times_ns: np.ndarray[tuple[int], np.dtype[np.uint64]],
        begin: Callable[[int, int, int], int],
        run: Callable[[int, Any, Any], None],
        /,
    ) -> None: ...
    # Leaves all calls to the ordinary way from now on.
    def end(self) -> None: ...

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
