# SPDX-License-Identifier: BSD-3-Clause
"""A stage for the express way: C's functions are Python's here.

So tests see each operation as C gets it, and decide what becomes of it.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from mpimcast._session import targets
from mpimcast._small import Express, Limits
from mpimcast._support.shared_memory import SharedMemory, shared_memory

NRANKS, RANK = 4, 1
ALLGATHER, BCAST, NODE_BARRIER = 1, 3, 4
UNKNOWN, OURS, LIBRARY, TRIAL = range(4)
EAGAIN = 1
IN_PLACE = object()
COMM: Any = object()


class Operation(ctypes.Structure):
    """C's struct mmc_operation."""

    _fields_ = (
        *((name, ctypes.c_uint32) for name in ("kind", "root", "notifies")),
        *((name, ctypes.c_uint32) for name in ("unready", "partial")),
        ("block_bytes", ctypes.c_uint64),
        *((name, ctypes.c_void_p) for name in ("blocks", "offsets", "send", "recv")),
        ("shared", ctypes.c_uint64),
    )


class Started(NamedTuple):
    """What C was told of an operation."""

    kind: int
    nbytes: int
    send: int | None
    recv: int | None
    root: int = 0
    shared: int = 0


START = ctypes.CFUNCTYPE(
    ctypes.c_int,
    ctypes.c_void_p,
    ctypes.POINTER(Operation),
    ctypes.c_uint64,
    ctypes.POINTER(ctypes.c_void_p),
)
END = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
EPOCH = ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_void_p)


@contextlib.contextmanager
def shared(buffer: Any) -> Iterator[None]:
    """Let a buffer lie in memory that ranks share."""
    Limits.hold_back(targets.holds)
    begin, end = address_of(buffer), address_of(buffer) + buffer.nbytes
    shared_memory.add(SharedMemory(begin, end, 1, frozenset()))
    yield
    shared_memory.remove(begin)


class Stage:
    """An express way, and C's functions and Python's around it."""

    def __init__(self, *, small_bytes: int = 0) -> None:
        self.started: list[Started] = []
        self.library: list[tuple[object, ...]] = []
        self.finished: list[tuple[Any, ...]] = []
        self.ended: list[tuple[str, int]] = []
        self.asked: list[int] = []
        self.status, self.request = 0, 0  # what starting an operation results in
        self.epoch, self.suspended = 0, False
        self.key = 0
        self.finish: Callable[..., None] = self._finish
        self.functions = (
            START(self._start),
            END(lambda request: self.ended.append(("cancel", request))),
            END(lambda request: self.ended.append(("free", request))),
            EPOCH(lambda _: self.epoch),
        )
        self.limits = Limits()
        self.limits.set(small_bytes * NRANKS, small_bytes)
        self.way = Express(self.limits, self._library("A"), self._library("B"))

    def begin(self) -> Stage:
        """Let the express way begin."""
        addresses = (
            ctypes.cast(each, ctypes.c_void_p).value for each in self.functions
        )
        numbers = tuple(np.dtype(code) for code in "dfBliq")
        self.way.begin(
            (1, 2, *addresses),
            (1000, RANK, NRANKS),
            (np.ndarray, numbers, shared_memory, IN_PLACE),
            (
                lambda *given: self.finish(*given),  # noqa: PLW0108 -- tests replace it
                lambda address: self.find_key(address),  # noqa: PLW0108
                self._watch,
            ),
        )
        return self

    def _start(self, stream: int, operation: Any, slice_ns: int, request: Any) -> int:
        assert (stream, slice_ns) == (1, 1000)
        each = operation.contents
        self.started.append(
            Started(
                each.kind,
                each.block_bytes,
                each.send,
                each.recv,
                each.root,
                each.shared,
            )
        )
        request[0] = self.request or None
        return self.status

    def _finish(self, place: int, name: str, *arguments: object) -> None:
        request = ctypes.c_void_p.from_address(place)
        self.finished.append((request.value, name, *arguments))
        request.value = None

    def find_key(self, address: int) -> int:
        """Return what names the place of a result."""
        self.asked.append(address)
        return self.key

    def _watch(self) -> bool:
        self.suspended = self.epoch != 0
        return self.suspended

    def _library(self, name: str) -> Callable[..., None]:
        return lambda *arguments: self.library.append((name, *arguments))


def address_of(buffer: Any) -> int:
    """Return the address of a buffer's memory."""
    return int(np.frombuffer(buffer, np.uint8).ctypes.data)
