# SPDX-License-Identifier: BSD-3-Clause
"""The memory of this process that the ranks of its node share, found by address.

Every view of a shared array lies in such memory, whatever object it belongs to.
"""

from __future__ import annotations

import threading
import zlib
from array import array
from bisect import bisect_right
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    Known = tuple[()] | tuple[list[int], list["SharedMemory"]]


class SharedMemory(NamedTuple):
    """The memory of one shared array, as this process has mapped it.

    Attributes
    ----------
    begin, end : int
        The addresses of its first byte, and of the byte behind its last.
    number : int
        What names it; equal on all ranks that it was made for, and unique.
    members : frozenset
        The processes that share it.
    """

    begin: int
    end: int
    number: int
    members: frozenset[Any]


class Target(NamedTuple):
    """The memory that an operation's result goes to.

    Attributes
    ----------
    memory : SharedMemory or None
        The shared memory that it lies in; None if it is private.
    key : int
        What names the place of the result in all shared memory; 0 if it is private.
    words : str
        Which memory it is, for messages.
    """

    memory: SharedMemory | None = None
    key: int = 0
    words: str = "private memory"


PRIVATE = Target()


class Register:
    """The shared memory of this process.

    Attributes
    ----------
    known : tuple
        All of it in the order of addresses: a list of the addresses where it begins,
        and a list of what begins there. Empty if there is none. It is never changed,
        but replaced.
    """

    def __init__(self) -> None:
        self.known: Known = ()
        # Reentrant, since a garbage collection in `_replace` may call `remove`.
        self._lock = threading.RLock()
        self._memories: dict[int, SharedMemory] = {}

    def add(self, memory: SharedMemory) -> None:
        """Add memory, which must not overlap any other."""
        self._memories[memory.begin] = memory
        self._replace()

    def remove(self, begin: int) -> None:
        """Forget the memory that begins at an address, if there is some."""
        self._memories.pop(begin, None)
        self._replace()

    def _replace(self) -> None:
        with self._lock:
            while True:
                before = self.known
                begins = sorted(self._memories)
                memories = [self._memories.get(begin) for begin in begins]
                if self.known is before and None not in memories:
                    self.known = (begins, memories) if begins else ()  # type: ignore[assignment]
                    return

    def find(self, address: int) -> SharedMemory | None:
        """Return the shared memory that has an address, if any."""
        known = self.known
        if not known:
            return None
        begins, memories = known
        index = bisect_right(begins, address) - 1
        if index >= 0 and address < memories[index].end:
            return memories[index]
        return None

    def target(
        self,
        address: int,
        nbytes: int,
        *,
        offsets_bytes: Sequence[int] | None = None,
        in_place: bool = False,
    ) -> Target:
        """Return the target of an operation whose result has `nbytes` at `address`.

        Parameters
        ----------
        address, nbytes
            The result.
        offsets_bytes
            Where the blocks of an Allgatherv begin, relative to `address`. They are
            mixed into the key, since ranks that differ would overwrite other blocks.
        in_place
            Whether this rank's block lies in its place already.
        """
        memory = self.find(address) if nbytes else None
        if memory is None:
            return PRIVATE
        offset = address - memory.begin
        key, words = memory.number + offset, f"byte {offset} of a shared array"
        words = f"{words} ({memory.number:x})"
        if offsets_bytes is not None:
            order = zlib.crc32(array("Q", offsets_bytes).tobytes())
            key ^= order << 16
            words = f"{words} with displacements that hash to {order:08x}"
        return Target(memory, key, f"{words}, in place" if in_place else words)


shared_memory = Register()
