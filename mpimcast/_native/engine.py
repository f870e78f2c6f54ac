# SPDX-License-Identifier: BSD-3-Clause
"""The engine of this process, its memory, and the notifications of its operations."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

from mpimcast._core import ffi, lib
from mpimcast._native.core import check
from mpimcast.errors import TransportError

if TYPE_CHECKING:
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
    made = ffi.new("void **")
    c = engine.acquire()
    pid = os.getpid()

    def free(memory: CData) -> None:
        if os.getpid() == pid:
            lib.mmc_memory_free(c, memory)
            engine.release()

    try:
        check(
            lib.mmc_memory_allocate(c, nbytes, made), f"cannot allocate {nbytes} bytes"
        )
    except TransportError:
        engine.release()
        raise
    return memoryview(ffi.buffer(ffi.gc(made[0], free, nbytes), nbytes))


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
