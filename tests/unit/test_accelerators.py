# SPDX-License-Identifier: BSD-3-Clause
"""Buffers that a device driver says are in its device's memory are refused.

The drivers are stand-ins, built from accelerator.c. A driver cannot be unloaded, so
each case runs in a separate process.
"""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path

import pytest
import support

SOURCE = Path(__file__).with_name("accelerator.c")
# The name of each driver's library, and what its stand-in is built with.
DRIVERS = {
    "CUDA": ("libcuda.so.1", "CUDA"),
    "HIP": ("libamdhip64.so.6", "HIP=6"),
    "HIP before 6": ("libamdhip64.so.5", "HIP=5"),
    "Level Zero": ("libze_loader.so.1", "LEVEL_ZERO"),
}
KINDS = {"host": 1, "device": 2, "managed": 3}  # as in accelerator.c

# Prints which driver holds memory: before a driver is loaded, while the driver does not
# know the memory, and then for each kind of memory, at its last byte and the next.
ASK = """
import ctypes, sys
from mpimcast._device import accelerators
def holder(address):
    found = accelerators.holder(address)
    return None if found is None else found.name
memory = ctypes.create_string_buffer(100)
address = ctypes.addressof(memory)
print("no driver", holder(address))
driver = ctypes.CDLL(sys.argv[1], mode=int(sys.argv[2]))
print("unknown", holder(address))
for name, kind in {kinds}.items():
    driver.learn(memory, ctypes.c_uint64(100), kind)
    print(name, holder(address + 99), holder(address + 100))
"""

# Passes arrays that have CUDA's array interface to `buffers.sending`. The driver says
# that their memory is of each kind in turn.
SEND = """
import ctypes, sys
import numpy as np
from mpi4py import MPI
from mpimcast._mpi import buffers

class Gpu:
    def __init__(self, array):
        self.array = array
        self.__cuda_array_interface__ = array.__array_interface__

memory = np.arange(4.0)
driver = ctypes.CDLL(sys.argv[1])
for name, kind in {kinds}.items():
    driver.learn(ctypes.c_void_p(memory.ctypes.data), ctypes.c_uint64(32), kind)
    array = Gpu(memory)
    for what in (memory, array, [array, MPI.DOUBLE], MPI.buffer.frombuffer(array)):
        try:
            taken = buffers.sending(what)
            assert (taken.address, taken.nbytes) == (memory.ctypes.data, 32)
            print(name, "taken")
        except BufferError as error:
            print(name, error)
    assert buffers.sending(Gpu(memory[4:])).nbytes == 0
"""


# Asks of messages in memory of each kind in turn whether they are small.
SMALL = """
import ctypes, sys
import numpy as np
from mpi4py import MPI
from mpimcast._mpi import buffers
from mpimcast._session.thresholds import Thresholds
from mpimcast._settings.config import Config

class Gpu:
    nbytes, itemsize = 32, 8
    def __init__(self, array):
        self.__cuda_array_interface__ = array.__array_interface__

memory = np.arange(4.0)
limits = Thresholds(Config.read(dict()), 1).limits
limits.set(1000, 1000)
driver = ctypes.CDLL(sys.argv[1])
array = Gpu(memory)
buffer = MPI.buffer.frombuffer(array)
for name, kind in {kinds}.items():
    driver.learn(ctypes.c_void_p(memory.ctypes.data), ctypes.c_uint64(32), kind)
    messages = (array, [array, MPI.DOUBLE], [array, 4], buffer, memoryview(buffer))
    print(name, *map(limits.small_block, messages))
    assert limits.small_block(bytes(8)) and limits.small_block(memoryview(bytes(8)))
"""


def build(folder: Path, driver: str, name: str = "") -> Path:
    """Build a driver's stand-in, and return the path of the library.

    It has the driver's usual name, or `name` if that is given.
    """
    library, define = DRIVERS[driver]
    made = folder / (name or library)
    compiler = support.require_tool("gcc")
    options = ("-std=c11", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC")
    support.run([compiler, *options, f"-D{define}", "-o", made, SOURCE], limit_s=60)
    return made


def printed(program: str, *arguments: object) -> list[str]:
    """Run a program and return the lines that it prints."""
    code = program.replace("{kinds}", str(KINDS))
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return support.run(command, limit_s=60).splitlines()


@pytest.mark.parametrize("driver", DRIVERS)
def test_memory_of_a_device(tmp_path: Path, driver: str) -> None:
    """Memory is a device's only where its driver says so, exactly to the last byte."""
    name = driver.removesuffix(" before 6")
    assert printed(ASK, build(tmp_path, driver), 0) == [
        "no driver None",
        "unknown None",
        "host None None",
        f"device {name} None",
        "managed None None",
    ]


@pytest.mark.parametrize(
    ("name", "mode"),
    [("libcuda-1f2e3d4c.so.560.35", 0), ("wrapper.so", ctypes.RTLD_GLOBAL)],
)
def test_renamed_driver(tmp_path: Path, name: str, mode: int) -> None:
    """A driver is found if a packager renamed it, or if it is loaded with RTLD_GLOBAL.

    With RTLD_GLOBAL its functions are found by their names, whatever the driver's name.
    """
    assert "device CUDA None" in printed(ASK, build(tmp_path, "CUDA", name), mode)


def test_library_that_is_no_driver(tmp_path: Path) -> None:
    """A library with only a driver's name, or only its functions, is not a driver."""
    for driver, name in (("CUDA", "libcudart.so.12"), ("Level Zero", "libcuda.so.1")):
        assert "device None None" in printed(ASK, build(tmp_path, driver, name), 0)


def test_arrays(tmp_path: Path) -> None:
    """An array is refused if it has items, in memory that no driver copies for us."""
    said = printed(SEND, build(tmp_path, "Level Zero"))
    refused = (
        "device the buffer lies in device memory, according to Level Zero; mpimcast "
        "copies from and to devices of CUDA and HIP only"
    )
    assert said == ["host taken"] * 4 + [refused] * 4 + ["managed taken"] * 4


def test_small_messages(tmp_path: Path) -> None:
    """A message on a device is not small, even where its size says that it is."""
    assert printed(SMALL, build(tmp_path, "CUDA")) == [
        f"host{5 * ' True'}",
        f"device{5 * ' False'}",
        f"managed{5 * ' True'}",
    ]
