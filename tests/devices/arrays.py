# SPDX-License-Identifier: BSD-3-Clause
"""Arrays on a device, by the driver's own calls: real ones, or those of the software.

An array belongs to a stream, in which it is written and read, and which it names by the
CUDA array interface or by DLPack. Nothing here waits unless it says so.
"""

from __future__ import annotations

import ctypes
import os
from ctypes import byref, c_int, c_size_t, c_uint, c_void_p

import numpy as np

_DLPACK_TYPES = {"CUDA": 2, "ROCM": 10}
_NON_BLOCKING, _UNTIMED = 1, 2

_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype = ctypes.py_object
_new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


class Driver:
    """The driver's calls that tests need.

    Parameters
    ----------
    path
        The driver's library.
    """

    def __init__(self, path: str) -> None:
        self.library = ctypes.CDLL(path)
        self.is_hip = hasattr(self.library, "hipInit")
        if self.is_hip:
            self.do("hipInit", c_uint(0))
        else:
            context = c_void_p()
            self.do("cuInit", c_uint(0))
            self.do("cuDevicePrimaryCtxRetain", byref(context), c_int(0))
            self.do("cuCtxPushCurrent_v2", context)

    def do(self, name: str, *arguments: object) -> None:
        """Call a function, which must succeed."""
        status = getattr(self.library, name)(*arguments)
        assert status == 0, f"{name} returns {status}"

    def choose(self, cuda: str, hip: str) -> str:
        """Return the name of a function in this driver."""
        return hip if self.is_hip else cuda

    def make_stream(self) -> int:
        """Make a stream that waits for no other."""
        made = c_void_p()
        name = self.choose("cuStreamCreate", "hipStreamCreateWithFlags")
        self.do(name, byref(made), c_uint(_NON_BLOCKING))
        assert made.value
        return made.value

    def allocate(self, nbytes: int) -> int:
        """Allocate memory of the device."""
        made = c_void_p()
        name = self.choose("cuMemAlloc_v2", "hipMalloc")
        self.do(name, byref(made), c_size_t(nbytes))
        assert made.value
        return made.value

    def pin(self, nbytes: int) -> np.ndarray:
        """Allocate pinned memory of the host, as an array of bytes."""
        made = c_void_p()
        name = self.choose("cuMemHostAlloc", "hipHostMalloc")
        self.do(name, byref(made), c_size_t(nbytes), c_uint(0))
        return np.ctypeslib.as_array(
            ctypes.cast(made, ctypes.POINTER(ctypes.c_uint8)), (nbytes,)
        )

    def order(self, stream: int, after: int) -> None:
        """Let a stream wait for what another has to do by now."""
        event = c_void_p()
        make = self.choose("cuEventCreate", "hipEventCreateWithFlags")
        self.do(make, byref(event), c_uint(_UNTIMED))
        record = self.choose("cuEventRecord", "hipEventRecord")
        self.do(record, event, c_void_p(after))
        wait = self.choose("cuStreamWaitEvent", "hipStreamWaitEvent")
        self.do(wait, c_void_p(stream), event, c_uint(0))
        self.do(self.choose("cuEventDestroy_v2", "hipEventDestroy"), event)

    def synchronize(self, stream: int) -> None:
        """Wait for all that a stream has to do."""
        name = self.choose("cuStreamSynchronize", "hipStreamSynchronize")
        self.do(name, c_void_p(stream))


class _Tensor(ctypes.Structure):
    """DLPack's DLManagedTensor."""

    _fields_ = (
        ("data", c_void_p),
        ("device", ctypes.c_int32 * 2),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", c_void_p),
        ("byte_offset", ctypes.c_uint64),
        ("manager", c_void_p * 2),
    )


class Array:
    """Bytes on a device, which belong to a stream.

    Parameters
    ----------
    driver
        The driver.
    nbytes
        How many.
    stream
        The stream; by default one of its own.
    """

    def __init__(self, driver: Driver, nbytes: int, stream: int | None = None) -> None:
        self.driver = driver
        self.nbytes = nbytes
        self.itemsize = 1
        self.stream = driver.make_stream() if stream is None else stream
        self.address = driver.allocate(max(nbytes, 1))
        self._host = driver.pin(max(nbytes, 1))

    def write(self, content: np.ndarray) -> None:
        """Have the stream write to the array, some time."""
        self.driver.synchronize(self.stream)  # the host's copy may be in use
        self._host[: self.nbytes] = content
        self._copy_in(self.stream)

    def _copy_in(self, stream: int) -> None:
        if self.nbytes:
            self.driver.do(
                self.driver.choose("cuMemcpyHtoDAsync_v2", "hipMemcpyHtoDAsync"),
                *(c_void_p(self.address), c_void_p(self._host.ctypes.data)),
                *(c_size_t(self.nbytes), c_void_p(stream)),
            )

    def begin_to_read(self, stream: int) -> np.ndarray:
        """Have a stream read the array, some time, into the memory that is returned."""
        read = self.driver.pin(max(self.nbytes, 1))
        if self.nbytes:
            self.driver.do(
                self.driver.choose("cuMemcpyDtoHAsync_v2", "hipMemcpyDtoHAsync"),
                *(c_void_p(read.ctypes.data), c_void_p(self.address)),
                *(c_size_t(self.nbytes), c_void_p(stream)),
            )
        return read[: self.nbytes]

    def read(self) -> np.ndarray:
        """Return the content, as a stream sees it that waits for no other."""
        stream = self.driver.make_stream()
        content = self.begin_to_read(stream)
        self.driver.synchronize(stream)
        destroy = self.driver.choose("cuStreamDestroy_v2", "hipStreamDestroy")
        self.driver.do(destroy, c_void_p(stream))
        return content


class CudaArray(Array):
    """An array that has the CUDA array interface."""

    @property
    def __cuda_array_interface__(self) -> dict[str, object]:
        """The interface, in version 3."""
        return {
            "version": 3,
            "typestr": "|u1",
            "shape": (self.nbytes,),
            "strides": None,
            "data": (self.address if self.nbytes else 0, False),
            "stream": self.stream,
        }


class DlpackArray(Array):
    """An array that has DLPack."""

    def __dlpack_device__(self) -> tuple[int, int]:
        """Return the type of the device, and its number."""
        return _DLPACK_TYPES["ROCM" if self.driver.is_hip else "CUDA"], 0

    def __dlpack__(self, *, stream: int | None = None) -> object:
        """Let the consumer's stream wait for this array's; return the capsule."""
        if stream not in (None, -1):
            self.driver.order(stream, self.stream)
        shape = (ctypes.c_int64 * 1)(self.nbytes)
        self._tensor = _Tensor(
            data=self.address,
            device=self.__dlpack_device__(),
            ndim=1,
            code=1,
            bits=8,
            lanes=1,
            shape=shape,
        )
        return _new_capsule(ctypes.addressof(self._tensor), b"dltensor", None)


def open_driver() -> Driver:
    """Return the driver whose library MPIMCAST_TEST_DRIVER names."""
    return Driver(os.environ["MPIMCAST_TEST_DRIVER"])
