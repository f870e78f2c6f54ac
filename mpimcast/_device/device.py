# SPDX-License-Identifier: BSD-3-Clause
"""A device as collectives use it: copies in two directions, and pinned memory."""

from __future__ import annotations

import functools
import threading
from bisect import bisect_left, insort
from typing import TYPE_CHECKING, Any, NamedTuple

from mpimcast._device.accelerators import holder
from mpimcast._device.driver import DRIVERS

if TYPE_CHECKING:
    import ctypes
    from collections.abc import Callable, Iterable

    from mpimcast._device.driver import Driver

# The most pinned memory that is kept for later operations. To pin takes milliseconds.
_KEPT_BYTES_MAX = 256 << 20

# What DLPack says of arrays that take their memory for the host's.
_DLPACK_CPU = 1

# CUDA's number of the default stream.
_DEFAULT_STREAM = 1

# The version of the CUDA array interface that says what arrays' streams mean.
_VERSION_WITH_STREAMS = 3


class Copy(NamedTuple):
    """A copy between the host and a device, in either direction."""

    host: int
    device: int
    nbytes: int


class Device:
    """A device that has memory of arrays, and its streams for copies.

    Parameters
    ----------
    driver
        The driver's calls.
    context
        The device's context.

    Attributes
    ----------
    name : str
        The driver's name, for messages.
    """

    def __init__(self, driver: Driver, context: int) -> None:
        self.name = driver.name
        self._driver = driver
        self._context = context
        with driver.current(context):
            self._outward = driver.make_stream()  # from the device
            self._inward = driver.make_stream()

    def follow(self, array: Any) -> None:
        """Let later copies wait for all that an array's own stream has to do by now."""
        with self._driver.current(self._context):
            stream = self._stream_of(array)
            for ours in (self._outward, self._inward):
                if stream not in (None, ours):
                    self._driver.order(ours, stream)

    def _stream_of(self, array: Any) -> int | None:
        """Return the stream after which an array may be used; None for any time.

        By DLPack the array itself lets a stream of ours wait.
        """
        if hasattr(array, "__dlpack__") and array.__dlpack_device__()[0] != _DLPACK_CPU:
            try:
                array.__dlpack__(stream=self._outward, max_version=(1, 0))
            except TypeError:  # older than this argument
                array.__dlpack__(stream=self._outward)
            return self._outward
        interface = getattr(array, "__cuda_array_interface__", None) or {}
        stream = interface.get("stream")
        if stream is None and interface.get("version", 0) >= _VERSION_WITH_STREAMS:
            return None
        return self._driver.stream_of(int(stream or _DEFAULT_STREAM))

    def fetch(
        self, copies: Iterable[Copy], then: Callable[[], None] | None = None
    ) -> None:
        """Copy to the host; then have another thread call a function."""
        driver, stream = self._driver, self._outward
        with driver.current(self._context):
            for copy in copies:
                driver.to_host(copy.host, copy.device, copy.nbytes, stream)
            if then is not None:
                driver.call(stream, then)

    def store(
        self, copies: Iterable[Copy], then: Callable[[], None] | None = None
    ) -> None:
        """Copy to the device; then have another thread call a function."""
        driver, stream = self._driver, self._inward
        with driver.current(self._context):
            for copy in copies:
                driver.to_device(copy.device, copy.host, copy.nbytes, stream)
            if then is not None:
                driver.call(stream, then)

    def check(self) -> None:
        """Raise an Error if a copy has failed."""
        with self._driver.current(self._context):
            self._driver.check(self._outward)
            self._driver.check(self._inward)

    def finish(self) -> None:
        """Wait for all copies."""
        with self._driver.current(self._context):
            self._driver.synchronize(self._outward)
            self._driver.synchronize(self._inward)

    def pin(self, nbytes: int) -> int:
        """Allocate pinned memory, which every device of the driver can use."""
        with self._driver.current(self._context):
            return self._driver.pin(nbytes)

    def unpin(self, address: int) -> None:
        """Free memory of `pin`."""
        with self._driver.current(self._context):
            self._driver.unpin(address)


def device_of(address: int) -> Device | None:
    """Return the device that alone can use an address; None if the host can.

    Raises
    ------
    BufferError
        If only a device can use it whose driver mpimcast cannot have copy.
    """
    found = holder(address)
    if found is None:
        return None
    if found.name not in DRIVERS:
        raise BufferError(
            f"the buffer lies in device memory, according to {found.name}; mpimcast "
            f"copies from and to devices of {' and '.join(DRIVERS)} only"
        )
    driver = _driver(found.name, found.library)
    return _device(driver, driver.context_of(address))


@functools.cache
def _driver(name: str, library: ctypes.CDLL) -> Driver:
    return DRIVERS[name](library)


@functools.cache
def _device(driver: Driver, context: int) -> Device:
    return Device(driver, context)


# ---- pinned memory -----------------------------------------------------------------


class Pinned(NamedTuple):
    """Pinned memory: its bytes, its address, and a device of the driver that has it."""

    nbytes: int
    address: int
    device: Device


class _Pool:
    """Pinned memory that is not in use, in the order of sizes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: list[Pinned] = []

    def take(self, nbytes: int, device: Device) -> Pinned:
        """Return at least `nbytes` that a device can use."""
        with self._lock:
            first = bisect_left(self._kept, nbytes, key=lambda each: each.nbytes)
            for index in range(first, len(self._kept)):
                if self._kept[index].device.name == device.name:
                    return self._kept.pop(index)
        return Pinned(nbytes, device.pin(nbytes), device)

    def give_back(self, pinned: Pinned) -> None:
        """Keep memory for others, or free it if too much is kept already."""
        with self._lock:
            kept_bytes = sum(each.nbytes for each in self._kept)
            if kept_bytes + pinned.nbytes <= _KEPT_BYTES_MAX:
                insort(self._kept, pinned, key=lambda each: each.nbytes)
                return
        pinned.device.unpin(pinned.address)


pool = _Pool()
