# SPDX-License-Identifier: BSD-3-Clause
"""Which blocks of an operation of the C library have landed."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, NamedTuple

from mpimcast._core import ffi, lib

if TYPE_CHECKING:
    from mpimcast._core import _CData as CData
    from mpimcast._native.calls import Calls


class Bits(NamedTuple):
    """The bits that say which chunks are present.

    Attributes
    ----------
    words : memoryview
        Words of 64 bits, of which the lowest is the first. They change until the
        operation has ended, and may be looked at as long as anything refers to them.
    nbits : int
        How many bits there are.
    """

    words: memoryview
    nbits: int


class NativeLanding:
    """The blocks of an operation, from before its start to its end.

    A call that does not wait may be made by any thread at any time. Those that wait
    must not overlap with `NativeOperation.free`.

    Parameters
    ----------
    calls
        C's functions.
    request
        The place of C's request.

    Attributes
    ----------
    lock : threading.Lock
        Held while C's request is in use, or freed.
    """

    def __init__(self, calls: Calls, request: CData) -> None:
        self.lock = threading.Lock()
        self._calls = calls
        self._request = request
        self._rank = ffi.new("uint32_t *")

    def block(self, index: int) -> int | None:
        """Return whose block was number `index`, from 0, to land; None if none was."""
        with self.lock:
            if self._request[0] == ffi.NULL:
                return None
            status = self._calls.wait_block(self._request[0], index, 0, self._rank)
            return int(self._rank[0]) if status == 0 else None

    def has(self, rank: int, first_bytes: int, nbytes: int) -> bool:
        """Return whether a range of a block is present."""
        wanted = self._range(rank, first_bytes, nbytes)
        with self.lock:
            if self._request[0] == ffi.NULL:
                return False
            return self._calls.wait_range(self._request[0], wanted, 0) == 0

    def wait_block(self, index: int, slice_ns: int) -> None:
        """Wait until so many blocks have landed, but for a slice of time at most."""
        rank = ffi.new("uint32_t *")
        self._calls.wait_block(self._request[0], index, slice_ns, rank)

    def wait_range(
        self, rank: int, first_bytes: int, nbytes: int, slice_ns: int
    ) -> None:
        """Wait until a range of a block is present, but for a slice at most."""
        wanted = self._range(rank, first_bytes, nbytes)
        self._calls.wait_range(self._request[0], wanted, slice_ns)

    def tell(self) -> None:
        """Let each block that lands wake the stream's notifications from now on."""
        with self.lock:
            if self._request[0] != ffi.NULL:
                self._calls.tell_blocks(self._request[0])

    def bits(self) -> Bits | None:
        """Return the bits of the chunks; None if there are none, or none any more."""
        made = ffi.new("struct mmc_present **")
        with self.lock:
            if self._request[0] == ffi.NULL:
                return None
            if self._calls.present(self._request[0], made) != 0:
                return None
        present, nbits = made[0], ffi.new("uint32_t *")
        words = ffi.cast("void *", lib.mmc_present_words(present, nbits))
        nbytes = (nbits[0] + 63) // 64 * 8
        held = ffi.gc(words, lambda _words: lib.mmc_present_free(present))
        return Bits(memoryview(ffi.buffer(held, nbytes)).toreadonly(), int(nbits[0]))

    @staticmethod
    def _range(rank: int, first_bytes: int, nbytes: int) -> CData:
        return ffi.new("struct mmc_range *", [rank, 0, first_bytes, nbytes])
