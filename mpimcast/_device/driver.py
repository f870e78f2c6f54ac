# SPDX-License-Identifier: BSD-3-Clause
"""The asynchronous calls of the drivers of CUDA's and HIP's devices.

The two drivers have the same calls under different names. Only how a thread says which
device it means differs.
"""

from __future__ import annotations

import contextlib
import ctypes
from ctypes import byref, c_char_p, c_int, c_size_t, c_uint, c_void_p
from typing import TYPE_CHECKING, Any

from mpimcast._device.listener import listener
from mpimcast.errors import Error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_NOT_READY = 600

# Flags of CUDA and HIP alike: memory that is pinned for all contexts, a stream that
# does not wait for the default one, an event that measures no time.
_PORTABLE, _NON_BLOCKING, _UNTIMED = 1, 1, 2

_CUDA = {
    "pin": "cuMemHostAlloc",
    "unpin": "cuMemFreeHost",
    "to_host": "cuMemcpyDtoHAsync_v2",
    "to_device": "cuMemcpyHtoDAsync_v2",
    "make_stream": "cuStreamCreate",
    "query": "cuStreamQuery",
    "synchronize": "cuStreamSynchronize",
    "make_event": "cuEventCreate",
    "record": "cuEventRecord",
    "wait_for": "cuStreamWaitEvent",
    "free_event": "cuEventDestroy_v2",
    "call": "cuLaunchHostFunc",
}
_HIP = {
    "pin": "hipHostMalloc",
    "unpin": "hipHostFree",
    "to_host": "hipMemcpyDtoHAsync",
    "to_device": "hipMemcpyHtoDAsync",
    "make_stream": "hipStreamCreateWithFlags",
    "query": "hipStreamQuery",
    "synchronize": "hipStreamSynchronize",
    "make_event": "hipEventCreateWithFlags",
    "record": "hipEventRecord",
    "wait_for": "hipStreamWaitEvent",
    "free_event": "hipEventDestroy",
    "call": "hipLaunchHostFunc",
}


class Driver:
    """The calls of one driver, each for a context of its own.

    A context names a device: CUDA's by an address, HIP's by a number. Addresses and
    streams are numbers, as the driver has them. Each call raises an Error if the driver
    returns one.

    Parameters
    ----------
    library
        The driver's library.

    Attributes
    ----------
    name : str
        The driver's name, for messages.
    """

    name: str
    _names: dict[str, str]

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library

    # ---- what differs ----------------------------------------------------------

    def context_of(self, address: int) -> int:
        """Return the context of the device that has memory at an address."""
        raise NotImplementedError

    @contextlib.contextmanager
    def current(self, context: int) -> Iterator[None]:
        """Let this thread's calls mean a context meanwhile."""
        raise NotImplementedError

    def stream_of(self, number: int) -> int:
        """Return the driver's name of a stream that an array names by a number."""
        return number

    def _error_name(self, status: int) -> str:
        raise NotImplementedError

    # ---- calls -----------------------------------------------------------------

    def do(self, function: str, *arguments: Any) -> None:
        """Call a function of the library."""
        status = getattr(self._library, function)(*arguments)
        if status:
            raise Error(
                f"{self.name}: {function} returns {self._error_name(status)} ({status})"
            )

    def pin(self, nbytes: int) -> int:
        """Allocate memory of the host from and to which the device copies by itself."""
        return self._make("pin", c_size_t(nbytes), c_uint(_PORTABLE))

    def unpin(self, address: int) -> None:
        """Free memory of `pin`."""
        self.do(self._names["unpin"], c_void_p(address))

    def make_stream(self) -> int:
        """Make a stream that waits for no other unless it is told to."""
        return self._make("make_stream", c_uint(_NON_BLOCKING))

    def order(self, stream: int, after: int) -> None:
        """Let a stream wait for all that another has to do by now."""
        event = c_void_p(self._make("make_event", c_uint(_UNTIMED)))
        try:
            self.do(self._names["record"], event, c_void_p(after))
            self.do(self._names["wait_for"], c_void_p(stream), event, c_uint(0))
        finally:
            # The driver frees it once nobody waits for it any more.
            self.do(self._names["free_event"], event)

    def to_host(self, host: int, device: int, nbytes: int, stream: int) -> None:
        """Have a stream copy to the host."""
        self.do(
            self._names["to_host"],
            *(c_void_p(host), c_void_p(device), c_size_t(nbytes), c_void_p(stream)),
        )

    def to_device(self, device: int, host: int, nbytes: int, stream: int) -> None:
        """Have a stream copy to the device."""
        self.do(
            self._names["to_device"],
            *(c_void_p(device), c_void_p(host), c_size_t(nbytes), c_void_p(stream)),
        )

    def call(self, stream: int, function: Callable[[], None]) -> None:
        """Have a function called once a stream has done all that it has to do by now.

        Another thread calls it. After an error it may never be called.
        """
        ended = c_void_p(listener.expect(function))
        bell = c_void_p(listener.bell)
        self.do(self._names["call"], c_void_p(stream), bell, ended)

    def check(self, stream: int) -> None:
        """Raise the error of a stream if it has failed."""
        name = self._names["query"]
        status = getattr(self._library, name)(c_void_p(stream))
        if status not in (0, _NOT_READY):
            raise Error(
                f"{self.name}: a copy has failed, {name} returns "
                f"{self._error_name(status)} ({status})"
            )

    def synchronize(self, stream: int) -> None:
        """Wait until a stream has done all that it had to do."""
        self.do(self._names["synchronize"], c_void_p(stream))

    def _make(self, role: str, *arguments: Any) -> int:
        made = c_void_p()
        self.do(self._names[role], byref(made), *arguments)
        return made.value or 0


class Cuda(Driver):
    """The calls of libcuda."""

    name = "CUDA"
    _names = _CUDA

    # CU_POINTER_ATTRIBUTE_...
    _CONTEXT, _DEVICE_ORDINAL = 1, 9

    def context_of(self, address: int) -> int:
        """Return the context of the device that has memory at an address.

        Memory that is mapped, or of a pool, has none of its own: it is used in its
        device's primary context, as the libraries above the driver do.
        """
        found, ordinal = c_void_p(), c_int()
        if not self._attribute(found, self._CONTEXT, address) and found.value:
            return found.value
        if self._attribute(ordinal, self._DEVICE_ORDINAL, address):
            raise Error(f"CUDA knows no device that has the address {address:#x}")
        self.do("cuDevicePrimaryCtxRetain", byref(found), ordinal)
        return found.value or 0

    def _attribute(self, value: Any, which: int, address: int) -> int:
        get = self._library.cuPointerGetAttribute
        return int(get(byref(value), c_int(which), c_void_p(address)))

    @contextlib.contextmanager
    def current(self, context: int) -> Iterator[None]:
        """Let this thread's calls mean a context meanwhile."""
        self.do("cuCtxPushCurrent_v2", c_void_p(context))
        try:
            yield
        finally:
            self.do("cuCtxPopCurrent_v2", byref(c_void_p()))

    def _error_name(self, status: int) -> str:
        name = c_char_p()
        self._library.cuGetErrorName(c_int(status), byref(name))
        return (name.value or b"an unknown error").decode()


class _HipAttributes(ctypes.Structure):
    """The beginning of hipPointerAttribute_t, with room for what follows."""

    _fields_ = (("type", c_int), ("device", c_int), ("more", ctypes.c_uint64 * 12))


class Hip(Driver):
    """The calls of libamdhip64."""

    name = "HIP"
    _names = _HIP

    # As CUDA arrays name the default stream, for which HIP has no other name than NULL.
    _DEFAULT = 1

    def context_of(self, address: int) -> int:
        """Return the number of the device that has memory at an address."""
        found = _HipAttributes()
        self.do("hipPointerGetAttributes", byref(found), c_void_p(address))
        return int(found.device)

    @contextlib.contextmanager
    def current(self, context: int) -> Iterator[None]:
        """Let this thread's calls mean a device meanwhile."""
        before = c_int()
        self.do("hipGetDevice", byref(before))
        self.do("hipSetDevice", c_int(context))
        try:
            yield
        finally:
            self.do("hipSetDevice", before)

    def stream_of(self, number: int) -> int:
        """Return the driver's name of a stream that an array names by a number."""
        return 0 if number == self._DEFAULT else number

    def _error_name(self, status: int) -> str:
        describe = self._library.hipGetErrorName
        describe.restype = c_char_p
        return (describe(c_int(status)) or b"an unknown error").decode()


DRIVERS: dict[str, type[Driver]] = {each.name: each for each in (Cuda, Hip)}
