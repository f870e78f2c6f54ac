# SPDX-License-Identifier: BSD-3-Clause
"""The engine of this process, its memory, and the notifications of its operations."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, NamedTuple

from mpimcast._core import ffi, lib
from mpimcast._native.core import check
from mpimcast.errors import TransportError

if TYPE_CHECKING:
    from collections.abc import Callable

    from mpimcast._core import _CData as CData


class _Engine:
    """This process's engine, created for its first user, destroyed after its last."""

    def __init__(self) -> None:
        # Reentrant, since a garbage collection may free engine memory, and so release
        # the engine, in a thread that holds the lock.
        self._lock = threading.RLock()
        self._c: CData | None = None
        self._pid = 0
        self._nusers = 0

    def acquire(self) -> CData:
        """Count one more user; return the C library's engine."""
        with self._lock:
            if self._pid != os.getpid():
                # A child of fork() must not use its parent's engine.
                self._c, self._pid, self._nusers = None, os.getpid(), 0
            self._nusers += 1
            if self._c is None:
                made = ffi.new("struct mmc_engine **")
                status = lib.mmc_engine_create(made)
                if status < 0:
                    self._nusers -= 1
                check(status, "cannot create the engine")
                self._c = made[0]
            return self._c

    def release(self) -> None:
        """Count one user less; destroy the engine if it was the last."""
        with self._lock:
            self._nusers -= 1
            if self._nusers == 0:
                lib.mmc_engine_destroy(self._c)
                self._c = None


engine = _Engine()


def allocate(nbytes: int) -> memoryview:
    """Return memory of the engine, which is freed when nothing refers to it any more.

    Raise TransportError if it cannot be allocated.
    """

    def obtain(c: CData, made: CData) -> None:
        status = lib.mmc_memory_allocate(c, nbytes, made)
        check(status, f"cannot allocate {nbytes} bytes")

    return _view(_take(nbytes, obtain, lambda _address: None), nbytes)


class Mapped(NamedTuple):
    """A file that is mapped as memory of the engine.

    Attributes
    ----------
    view : memoryview
        The memory, which is unmapped when nothing refers to it any more.
    address : int
        Its first byte.
    """

    view: memoryview
    address: int


def map_file(fd: int, nbytes: int, forget: Callable[[int], None]) -> Mapped:
    """Map a file; its descriptor may be closed afterwards.

    Parameters
    ----------
    fd, nbytes
        The file's descriptor, and the bytes to map.
    forget
        Called with the memory's address before it is unmapped.

    Raises
    ------
    TransportError
        If it cannot be mapped.
    """

    def obtain(c: CData, made: CData) -> None:
        status = lib.mmc_memory_map(c, fd, nbytes, made)
        check(status, f"cannot map {nbytes} bytes of shared memory")

    memory = _take(nbytes, obtain, forget)
    return Mapped(_view(memory, nbytes), int(ffi.cast("uintptr_t", memory)))


def _take(
    nbytes: int, obtain: Callable[[CData, CData], None], forget: Callable[[int], None]
) -> CData:
    """Return C's pointer to memory that `obtain` has got from the engine.

    When nothing refers to the pointer any more, `forget` is called with the address,
    and the memory goes back to the engine.
    """
    made = ffi.new("void **")
    c = engine.acquire()
    pid = os.getpid()

    def free(memory: CData) -> None:
        if os.getpid() == pid:
            forget(int(ffi.cast("uintptr_t", memory)))
            lib.mmc_memory_free(c, memory)
            engine.release()

    try:
        obtain(c, made)
    except TransportError:
        engine.release()
        raise
    return ffi.gc(made[0], free, nbytes)


def _view(memory: CData, nbytes: int) -> memoryview:
    return memoryview(ffi.buffer(memory, nbytes))


class Notifications:
    """Notifications of the ends of operations, which one thread awaits."""

    def __init__(self) -> None:
        self._engine = engine.acquire()
        # How many operations had ended at the last call of `wait`, kept by C.
        self._nended = ffi.new("uint64_t *")

    def wait(self) -> None:
        """Sleep until some operation has ended since the last call, or until `rouse`.

        Only operations whose `Description` says that they notify are counted.
        """
        status = lib.mmc_engine_await(self._engine, self._nended)
        check(status, "cannot wait for operations to end")

    def rouse(self) -> None:
        """Wake the thread that sleeps in `wait`; if none does, end the next wait."""
        lib.mmc_engine_rouse(self._engine)

    def close(self) -> None:
        """Release the engine."""
        engine.release()


def unbind_thread() -> None:
    """Let this thread run on any core, even if its process is bound to one."""
    lib.mmc_thread_unbind()
