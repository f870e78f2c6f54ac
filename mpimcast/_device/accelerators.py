# SPDX-License-Identifier: BSD-3-Clause
"""Asks the drivers of accelerators whether an address lies in a device's memory.

Only a driver knows that. In a process that has loaded no driver there is no device
memory, whatever an array says about itself. This module asks the drivers that the
program has loaded, and loads none itself.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from mpimcast._small import nloaded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Driver(NamedTuple):
    """The driver of one vendor's devices.

    Attributes
    ----------
    name : str
        The driver's name, for messages.
    library : str
        The beginning of its library's file name.
    query : str
        The function that describes a pointer; a library without it is not the driver.
    holds : callable
        Takes the loaded library and an address, and returns whether only the device
        can use the memory there.
    """

    name: str
    library: str
    query: str
    holds: Callable[[ctypes.CDLL, int], bool]


class Holder(NamedTuple):
    """The driver whose device alone can use some memory.

    Attributes
    ----------
    name : str
        The driver's name, for messages.
    library
        The driver's library.
    """

    name: str
    library: ctypes.CDLL


def holder(address: int) -> Holder | None:
    """Return the driver whose device alone can use an address, if any.

    Return None for memory that the host can also use, such as memory that a driver
    manages for both, shares, or has allocated on the host.
    """
    for driver, library in loaded():
        if driver.holds(library, address):
            return Holder(driver.name, library)
    return None


# ---- drivers in this process ----------------------------------------------------

_found: list[tuple[Driver, ctypes.CDLL]] = []
_searched_at = 0  # how many libraries had been loaded at the last search


def loaded() -> list[tuple[Driver, ctypes.CDLL]]:
    """Return the drivers in this process, with their libraries.

    A program may load a driver at any time. Until one is found, a call searches again
    if libraries have been loaded since the last search.
    """
    global _searched_at  # noqa: PLW0603 -- a process has its libraries once
    if not _found and (now := nloaded()) != _searched_at:
        _searched_at = now
        _found.extend(_search())
    return _found


def _search() -> Iterator[tuple[Driver, ctypes.CDLL]]:
    """Yield the drivers that this process has loaded, with their libraries."""
    paths = _mapped_files()
    for driver in _DRIVERS:
        # A version may follow the ending .so, and packagers may put a hash before it.
        pattern = re.compile(rf"{driver.library}(-[0-9a-f]+)?\.so\b.*")
        named = [path for path in paths if pattern.fullmatch(Path(path).name)]
        for library in _opened([None, *named]):
            if hasattr(library, driver.query):
                yield driver, library
                break


def _mapped_files() -> list[str]:
    """Return the paths of the files mapped into this process, each once."""
    with contextlib.suppress(OSError):
        lines = Path("/proc/self/maps").read_text(errors="replace").splitlines()
        return sorted({line[line.index("/") :] for line in lines if "/" in line})
    return []


def _opened(paths: list[str | None]) -> Iterator[ctypes.CDLL]:
    """Yield the libraries at these paths that are already loaded.

    The path None stands for all libraries whose symbols are global.
    """
    for path in paths:
        with contextlib.suppress(OSError):
            yield ctypes.CDLL(path, mode=os.RTLD_NOLOAD)


# ---- CUDA -----------------------------------------------------------------------

_CU_POINTER_ATTRIBUTE_MEMORY_TYPE = 2
_CU_POINTER_ATTRIBUTE_IS_MANAGED = 8
_CU_MEMORYTYPE_DEVICE = 2


def _cuda_holds(library: ctypes.CDLL, address: int) -> bool:
    """Ask CUDA whether only its device can use the memory at an address.

    The driver's function fails for memory that the driver does not know, such as memory
    that the host has allocated without it.
    """

    def attribute(which: int) -> int:
        value = ctypes.c_uint(0)
        status = library.cuPointerGetAttribute(
            ctypes.byref(value), ctypes.c_int(which), ctypes.c_uint64(address)
        )
        return 0 if status else value.value

    return attribute(
        _CU_POINTER_ATTRIBUTE_MEMORY_TYPE
    ) == _CU_MEMORYTYPE_DEVICE and not attribute(_CU_POINTER_ATTRIBUTE_IS_MANAGED)


# ---- HIP ------------------------------------------------------------------------

_HIP_MEMORY_TYPE_DEVICE = 2
_HIP_MEMORY_TYPE_DEVICE_BEFORE_6 = 1
_HIP_VERSION_6 = 60_000_000


class _HipPointerAttribute(ctypes.Structure):
    """The result of hipPointerGetAttributes, with room for fields added later."""

    _fields_ = (
        ("type", ctypes.c_int),
        ("device", ctypes.c_int),
        ("device_pointer", ctypes.c_void_p),
        ("host_pointer", ctypes.c_void_p),
        ("is_managed", ctypes.c_int),
        ("allocation_flags", ctypes.c_uint),
        ("more", ctypes.c_uint64 * 8),
    )


def _hip_holds(library: ctypes.CDLL, address: int) -> bool:
    """Ask HIP whether only its device can use the memory at an address.

    Since version 6, HIP numbers the types of memory as CUDA does.
    """
    found = _HipPointerAttribute()
    status = library.hipPointerGetAttributes(
        ctypes.byref(found), ctypes.c_void_p(address)
    )
    if status or found.is_managed:
        return False
    version = ctypes.c_int(_HIP_VERSION_6)
    if hasattr(library, "hipRuntimeGetVersion"):
        library.hipRuntimeGetVersion(ctypes.byref(version))
    if version.value < _HIP_VERSION_6:
        return bool(found.type == _HIP_MEMORY_TYPE_DEVICE_BEFORE_6)
    return bool(found.type == _HIP_MEMORY_TYPE_DEVICE)


# ---- Level Zero -----------------------------------------------------------------

_ZE_STRUCTURE_TYPE_CONTEXT_DESC = 0xD
_ZE_STRUCTURE_TYPE_MEMORY_ALLOCATION_PROPERTIES = 0x17
_ZE_MEMORY_TYPE_DEVICE = 2


class _ZeContextDesc(ctypes.Structure):
    _fields_ = (
        ("stype", ctypes.c_int),
        ("next", ctypes.c_void_p),
        ("flags", ctypes.c_uint32),
    )


class _ZeMemoryAllocationProperties(ctypes.Structure):
    _fields_ = (
        ("stype", ctypes.c_int),
        ("next", ctypes.c_void_p),
        ("type", ctypes.c_int),
        ("id", ctypes.c_uint64),
        ("page_bytes", ctypes.c_uint64),
    )


def _ze_holds(library: ctypes.CDLL, address: int) -> bool:
    """Ask all Level Zero drivers whether only a device can use an address.

    Each driver knows all memory that it has allocated.
    """
    for context in _ze_contexts(library):
        found = _ZeMemoryAllocationProperties(
            stype=_ZE_STRUCTURE_TYPE_MEMORY_ALLOCATION_PROPERTIES
        )
        status = library.zeMemGetAllocProperties(
            context, ctypes.c_void_p(address), ctypes.byref(found), None
        )
        if not status and found.type == _ZE_MEMORY_TYPE_DEVICE:
            return True
    return False


def _ze_contexts(library: ctypes.CDLL) -> list[ctypes.c_void_p]:
    """Return a context of each driver; none before the program has initialised one.

    A query needs a context, and the program's own contexts are not known here.
    """
    count = ctypes.c_uint32(0)
    if library.zeDriverGet(ctypes.byref(count), None) or not count.value:
        return []
    return _make_ze_contexts(library, count.value)


@functools.cache
def _make_ze_contexts(library: ctypes.CDLL, ndrivers: int) -> list[ctypes.c_void_p]:
    drivers = (ctypes.c_void_p * ndrivers)()
    library.zeDriverGet(ctypes.byref(ctypes.c_uint32(ndrivers)), drivers)
    contexts = []
    for driver in drivers:
        context = ctypes.c_void_p()
        desc = _ZeContextDesc(stype=_ZE_STRUCTURE_TYPE_CONTEXT_DESC)
        if not library.zeContextCreate(
            ctypes.c_void_p(driver), ctypes.byref(desc), ctypes.byref(context)
        ):
            contexts.append(context)
    return contexts


_DRIVERS = (
    Driver("CUDA", "libcuda", "cuPointerGetAttribute", _cuda_holds),
    Driver("HIP", "libamdhip64", "hipPointerGetAttributes", _hip_holds),
    Driver("Level Zero", "libze_loader", "zeMemGetAllocProperties", _ze_holds),
)
