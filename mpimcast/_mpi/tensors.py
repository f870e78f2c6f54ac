# SPDX-License-Identifier: BSD-3-Clause
"""Finds the item size of arrays that have DLPack or the CUDA array interface.

mpi4py finds the memory of such an array, but does not tell the type of its items. This
module uses the item size that mpi4py uses: that of the MPI type, or one byte if MPI has
no such type. The structures are those of DLPack 1.0.
"""

from __future__ import annotations

import ctypes
from typing import Any

# The types of DLPack (enum DLDataTypeCode) that MPI also has.
_INT, _UINT, _FLOAT, _COMPLEX, _BOOL = 0, 1, 2, 5, 6
_VERSION_MAJOR = 1

_LONG_DOUBLE_BITS = 8 * ctypes.sizeof(ctypes.c_longdouble)
_FLOAT_BITS = (32, 64, _LONG_DOUBLE_BITS)
_MPI_BITS = {
    _INT: (8, 16, 32, 64),
    _UINT: (8, 16, 32, 64),
    _FLOAT: (16, *_FLOAT_BITS),
    _COMPLEX: (32, *(2 * bits for bits in _FLOAT_BITS)),
    _BOOL: (8,),
}
# The type codes of the CUDA array interface, which are NumPy's.
_KINDS = {"i": _INT, "u": _UINT, "f": _FLOAT, "c": _COMPLEX, "b": _BOOL}


class _DataType(ctypes.Structure):
    _fields_ = (
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
    )


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("dtype", _DataType),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("byte_offset", ctypes.c_uint64),
    )


class _Versioned(ctypes.Structure):
    """A DLManagedTensorVersioned."""

    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    )


_is_capsule = ctypes.pythonapi.PyCapsule_IsValid
_is_capsule.argtypes = [ctypes.py_object, ctypes.c_char_p]
_is_capsule.restype = ctypes.c_int
_content_of = ctypes.pythonapi.PyCapsule_GetPointer
_content_of.argtypes = [ctypes.py_object, ctypes.c_char_p]
_content_of.restype = ctypes.c_void_p


def item_bytes(owner: Any) -> int:
    """Return the size of the items of an array.

    Parameters
    ----------
    owner
        The object that mpi4py keeps for the array: a DLPack capsule, of either form
        and not yet consumed, or the array itself if it has the CUDA array interface.

    Raises
    ------
    BufferError
        If the capsule's DLPack version is newer than this code supports.
    """
    if _is_capsule(owner, b"dltensor_versioned"):
        managed = _Versioned.from_address(_content_of(owner, b"dltensor_versioned"))
        if managed.major > _VERSION_MAJOR:
            raise BufferError(
                f"dlpack: mpimcast does not support version {managed.major}."
                f"{managed.minor}"
            )
        return _dlpack_bytes(managed.tensor.dtype)
    if _is_capsule(owner, b"dltensor"):
        # A DLManagedTensor begins with its tensor.
        tensor = _Tensor.from_address(_content_of(owner, b"dltensor"))
        return _dlpack_bytes(tensor.dtype)
    interface = getattr(owner, "__cuda_array_interface__", None)
    if interface is None:
        return 1
    typestr = interface["typestr"]
    return _bytes_of(_KINDS.get(typestr[1]), 8 * int(typestr[2:]))


def _dlpack_bytes(dtype: _DataType) -> int:
    if dtype.lanes == 1:
        return _bytes_of(dtype.code, dtype.bits)
    is_complex = dtype.lanes == 2 and dtype.code == _FLOAT  # noqa: PLR2004 -- a pair
    return dtype.bits // 4 if is_complex and dtype.bits in _FLOAT_BITS else 1


def _bytes_of(code: int | None, bits: int) -> int:
    return bits // 8 if code in _MPI_BITS and bits in _MPI_BITS[code] else 1
