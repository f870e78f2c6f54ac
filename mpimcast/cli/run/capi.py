# SPDX-License-Identifier: BSD-3-Clause
"""Communicators that compiled code hands to Python by mpi4py's C API.

Extension modules make them with ``PyMPIComm_New``, which they look up in mpi4py's
table when they are imported. Under ``run`` the table holds a function of mpimcast.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

from mpi4py import MPI

if TYPE_CHECKING:
    from collections.abc import Callable

_NAME = "PyMPIComm_New"
_SIGNATURE = b"PyObject *(MPI_Comm)"  # extension modules check it

_get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_get_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
_get_pointer.restype = ctypes.c_void_p
_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_new_capsule.restype = ctypes.py_object

# Extension modules keep the address of the function for as long as they live.
_kept: list[object] = []


def wrap_communicators(wrap: Callable[[MPI.Comm], MPI.Comm]) -> None:
    """Apply `wrap` to each communicator that an extension module makes.

    Extension modules that were imported earlier keep mpi4py's function.
    """
    table: dict[str, Any] = getattr(MPI, "__pyx_capi__", {})
    if _NAME not in table:
        return
    # A handle is a pointer or a number, depending on the MPI library.
    wide = MPI._sizeof(MPI.Comm) == ctypes.sizeof(ctypes.c_uint64)  # noqa: SLF001
    handle = ctypes.c_uint64 if wide else ctypes.c_uint32
    prototype = ctypes.PYFUNCTYPE(ctypes.py_object, handle)
    library_new = prototype(_get_pointer(table[_NAME], _SIGNATURE))
    new = prototype(lambda number: wrap(library_new(number)))
    address = ctypes.cast(new, ctypes.c_void_p)
    _kept.append(new)
    table[_NAME] = _new_capsule(address, _SIGNATURE, None)
