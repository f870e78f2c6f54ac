# SPDX-License-Identifier: BSD-3-Clause
"""Whether an address belongs to the memory of a device, as its driver says.

Only a driver knows that. Without one in the process there is no device memory, however
an array describes itself. Drivers that the program has loaded are asked; none is loaded
here.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Driver(NamedTuple):
    """The driver of one vendor's devices.

    Attributes
    ----------
    name : str
        Its name, for messages.
    library : str
        The beginning of its library's file name.
    question : str
        The function that tells of a pointer; a library without it is another.
    holds : callable
        Takes the loaded library and an address, and returns whether only the device
        can use the memory there.
    """

    name: str
    library: str
    question: str
    holds: Callable[[ctypes.CDLL, int], bool]


def holder(address: int) -> str | None:
    """Return the name of the driver that calls an address its device's, if one does.

    Memory that the host can use as well is not the device's alone: managed, shared or
    allocated on the host.
    """
    for driver, library in _loaded():
        if driver.holds(library, address):
            return driver.name
    return None


# ---- drivers in this process ----------------------------------------------------

_found: list[tuple[Driver, ctypes.CDLL]] = []


def _loaded() -> list[tuple[Driver, ctypes.CDLL]]:
    """Return the drivers in this process.

    A program may load one at any time, so that is looked up until one is there.
    """
    if not _found:
        _found.extend(_search())
    return _found


def _search() -> Iterator[tuple[Driver, ctypes.CDLL]]:
    paths = _mapped_files()
    for driver in _DRIVERS:
        # A version, or a hash that packagers put before it, follows the name.
        pattern = re.compile(rf"{driver.library}(-[0-9a-f]+)?\.so\b.*")
        named = [path for path in paths if pattern.fullmatch(Path(path).name)]
        for library in _opened([None, *named]):
            if hasattr(library, driver.question):
                yield driver, library
                break


def _mapped_files() -> list[str]:
    """List the files that are mapped into this process, each once."""
    with contextlib.suppress(OSError):
        lines = Path("/proc/self/maps").read_text(errors="replace").splitlines()
        return sorted({line[line.index("/") :] for line in lines if "/" in line})
    return []


def _opened(paths: list[str | None]) -> Iterator[ctypes.CDLL]:
    """Open what is loaded already: all that symbols are global of (None), or files."""
    for path in paths:
        with contextlib.suppress(OSError):
            yield ctypes.CDLL(path, mode=os.RTLD_NOLOAD)


# ---- CUDA -----------------------------------------------------------------------

_CU_POINTER_ATTRIBUTE_MEMORY_TYPE = 2
_CU_POINTER_ATTRIBUTE_IS_MANAGED = 8
_CU_MEMORYTYPE_DEVICE = 2


def _cuda_holds(library: ctypes.CDLL, address: int) -> bool:
    """Ask the CUDA driver. It fails for memory that it does not know: the host's."""

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
    """What hipPointerGetAttributes fills in; large enough for more to follow."""

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
    """Ask HIP, which numbers the types of memory as CUDA does since version 6."""
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
    """Ask Level Zero, whose every driver knows all that was allocated by it."""
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
    """Return a context of each driver; none while the program has not begun to use it.

    A question needs a context, and that of the program is not known here.
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
