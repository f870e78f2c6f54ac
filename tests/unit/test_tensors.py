# SPDX-License-Identifier: BSD-3-Clause
"""Arrays with DLPack or CUDA's array interface have the items that mpi4py finds."""

from __future__ import annotations

import bisect
import ctypes
import itertools
import sys

import numpy as np
import pytest
from mpi4py import MPI

from mpimcast._mpi import buffers

# DLPack's names for its numbers.
CODES = range(7)  # enum DLDataTypeCode
CPU, CUDA, CUDA_HOST = 1, 2, 3  # enum DLDeviceType
READ_ONLY = 1  # DLPACK_FLAG_BITMASK_READ_ONLY

NBYTES = 960  # a multiple of the size of every item
BITS = (1, 4, 8, 16, 24, 32, 64, 80, 128)

new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype = ctypes.py_object
new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


class DLTensor(ctypes.Structure):
    """DLPack's DLTensor, including its padding."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", ctypes.c_int32 * 2),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.c_void_p),
        ("byte_offset", ctypes.c_uint64),
    )


class Managed(ctypes.Structure):
    """A DLManagedTensor."""

    _fields_ = (("tensor", DLTensor), ("context", ctypes.c_void_p * 2))


class ManagedVersioned(ctypes.Structure):
    """A DLManagedTensorVersioned."""

    _fields_ = (
        ("version", ctypes.c_uint32 * 2),
        ("context", ctypes.c_void_p * 2),
        ("flags", ctypes.c_uint64),
        ("tensor", DLTensor),
    )


class Tensor:
    """A tensor that DLPack can export.

    `dtype` is the items' type: its code, its bits and its number of lanes. If `version`
    is 0, the tensor is exported without a version.
    """

    def __init__(
        self,
        dtype: tuple[int, int, int],
        device: int = CPU,
        flags: int = 0,
        version: int = 0,
    ) -> None:
        self.memory = np.arange(NBYTES + 8, dtype=np.uint8)
        code, bits, lanes = dtype
        self.device, self.version = device, version
        self.shape = (ctypes.c_int64 * 1)(NBYTES // ((bits * lanes + 7) // 8))
        tensor = DLTensor(
            data=self.memory.ctypes.data,
            device=(device, 0),
            ndim=1,
            code=code,
            bits=bits,
            lanes=lanes,
            shape=self.shape,
            byte_offset=8,
        )
        if version:
            self.managed = ManagedVersioned(
                version=(version, 0), flags=flags, tensor=tensor
            )
        else:
            self.managed = Managed(tensor=tensor)

    def __dlpack_device__(self) -> tuple[int, int]:
        """Return type and number of the device."""
        return self.device, 0

    def __dlpack__(self, **options: object) -> object:
        """Return a capsule that points into this object, which must outlive it."""
        assert ("stream" in options) == (self.device != CPU)
        if not self.version and "max_version" in options:
            raise TypeError("this producer is older than versions")
        name = b"dltensor_versioned" if self.version else b"dltensor"
        return new_capsule(ctypes.addressof(self.managed), name, None)


class CudaArray:
    """An array that has the CUDA array interface."""

    def __init__(self, kind: str, item_bytes: int) -> None:
        self.memory = np.arange(NBYTES, dtype=np.uint8)
        self.__cuda_array_interface__ = {
            "version": 3,
            "typestr": f"<{kind}{item_bytes}",
            "shape": (NBYTES // item_bytes,),
            "data": (self.memory.ctypes.data, False),
        }


def has_items(array: object, displacement: int) -> bool:
    """Return whether mpi4py finds at least `displacement` items in an array.

    mpi4py raises KeyError if it does not know their type.
    """
    try:
        MPI.COMM_SELF.Send_init([array, (0, displacement)], 0).Free()
    except ValueError:
        return False
    return True


def item_bytes(array: object) -> int:
    """Return the size of an array's items according to mpi4py.

    It refuses a displacement beyond the last item, which shows how many items there
    are.
    """
    counts = range(1, NBYTES + 1)
    nitems = bisect.bisect(counts, 0, key=lambda count: not has_items(array, count))
    return NBYTES // nitems


def check_items(array: object) -> bool:
    """Compare the size of an array's items with the size that mpi4py finds.

    Return whether mpi4py knows their type. If it does not, mpimcast must refuse the
    array in the same way.
    """
    try:
        expected = item_bytes(array)
    except KeyError:
        with pytest.raises(KeyError):
            buffers.sending(array)
        return False
    _, _, nbytes, size = buffers.locate(array, None)
    assert (nbytes, size) == (NBYTES, expected)
    return True


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize("device", [CPU, CUDA, CUDA_HOST])
def test_dlpack_types(device: int, version: int) -> None:
    """Items of each DLPack type have the size that mpi4py finds."""
    known = [
        check_items(Tensor(dtype, device, version=version))
        for dtype in itertools.product(CODES, BITS, (1, 2, 4))
    ]
    assert sum(known) > 100


def test_cuda_types() -> None:
    """Items of each type of CUDA's array interface have the size that mpi4py finds."""
    sizes = (1, 2, 3, 4, 8, 16, 32)
    known = [
        check_items(CudaArray(*each)) for each in itertools.product("biufcV", sizes)
    ]
    assert sum(known) > 30


@pytest.mark.parametrize("version", [0, 1])
def test_content(version: int) -> None:
    """The memory begins at the tensor's address plus its offset."""
    array = Tensor((0, 32, 1), version=version)
    message = buffers.sending(array)
    assert message.address == array.memory.ctypes.data + 8
    assert message.nbytes == NBYTES


def test_read_only() -> None:
    """A tensor that is flagged read-only can be sent, but not received into."""
    array = Tensor((0, 32, 1), flags=READ_ONLY, version=1)
    assert buffers.sending(array).nbytes == NBYTES
    with pytest.raises(BufferError, match="not writable"):
        buffers.receiving(array, 1)


def test_unknown_version() -> None:
    """A tensor of a later major version is refused."""
    with pytest.raises(BufferError, match=r"version 2\.0"):
        buffers.sending(Tensor((0, 32, 1), version=2))


def test_memory_stays() -> None:
    """A tensor's memory lives as long as the message that was made from it."""
    content = np.arange(4.0)

    class Producer:
        def __dlpack__(self, **options: object) -> object:
            return content.__dlpack__(**options)

        def __dlpack_device__(self) -> tuple[int, int]:
            return content.__dlpack_device__()

    before = sys.getrefcount(content)
    message = buffers.sending(Producer())
    assert sys.getrefcount(content) == before + 1
    del message
    assert sys.getrefcount(content) == before
