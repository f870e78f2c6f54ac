# SPDX-License-Identifier: BSD-3-Clause
"""Asks the MPI library whether it takes buffers in the memory of devices."""

from __future__ import annotations

import ctypes
import functools

from mpi4py import MPI

# By a driver's name: the functions of MPI libraries that take no argument, and the type
# by which MPICH's asks for all devices.
_QUERIES = {
    "CUDA": ("MPIX_Query_cuda_support", 0),
    "HIP": ("MPIX_Query_rocm_support", 2),
}


@functools.cache
def is_aware_of(driver: str) -> bool:
    """Return whether the MPI library says that it takes memory of a driver's devices.

    Parameters
    ----------
    driver
        The driver's name: CUDA or HIP.
    """
    if driver not in _QUERIES:
        return False
    own, number = _QUERIES[driver]
    for library in (ctypes.CDLL(None), ctypes.CDLL(MPI.__file__)):
        if hasattr(library, own):
            return bool(getattr(library, own)())
        if hasattr(library, "MPIX_GPU_query_support"):
            supported = ctypes.c_int(0)
            failed = library.MPIX_GPU_query_support(number, ctypes.byref(supported))
            return not failed and bool(supported.value)
    return False
