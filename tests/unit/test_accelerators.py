# SPDX-License-Identifier: BSD-3-Clause
"""Whose memory an address is, according to stand-ins for device drivers.

A driver stays loaded, so each case is a process of its own.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import support

SOURCE = Path(__file__).with_name("accelerator.c")
DRIVERS = {
    "CUDA": ("libcuda.so.1", "CUDA"),
    "HIP": ("libamdhip64.so.6", "HIP=6"),
    "HIP before 6": ("libamdhip64.so.5", "HIP=5"),
    "Level Zero": ("libze_loader.so.1", "LEVEL_ZERO"),
}
KINDS = {"host": 1, "device": 2, "managed": 3}

# Prints who holds memory: before a driver is loaded, once it is, and as each kind.
ASK = """
import ctypes, sys
from mpimcast._mpi import accelerators
memory = ctypes.create_string_buffer(100)
address = ctypes.addressof(memory)
print("no driver", accelerators.holder(address))
driver = ctypes.CDLL(sys.argv[1], mode=int(sys.argv[2]))
print("unknown", accelerators.holder(address))
for name, kind in {kinds}.items():
    driver.learn(memory, ctypes.c_uint64(100), kind)
    print(name, accelerators.holder(address + 99), accelerators.holder(address + 100))
"""

# Passes arrays that claim to be on a device to `buffers.sending`.
GATHER = """
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
    for what in (array, [array, MPI.DOUBLE], MPI.buffer.frombuffer(array)):
        try:
            taken = buffers.sending(what)
            assert (taken.address, taken.nbytes) == (memory.ctypes.data, 32)
            print(name, "taken")
        except BufferError as error:
            print(name, error)
    assert buffers.sending(memory).nbytes == 32
    assert buffers.sending(Gpu(memory[4:])).nbytes == 0
"""


def build(folder: Path, driver: str, name: str = "") -> Path:
    """Build a driver and return its library's path."""
    library, define = DRIVERS[driver]
    made = folder / (name or library)
    compiler = support.require_tool("gcc")
    options = ("-std=c11", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC")
    support.run([compiler, *options, f"-D{define}", "-o", made, SOURCE], limit_s=60)
    return made


def say(program: str, *arguments: object) -> list[str]:
    """Run a program and return the lines that it prints."""
    code = program.replace("{kinds}", str(KINDS))
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return support.run(command, limit_s=60).splitlines()


@pytest.mark.parametrize("driver", DRIVERS)
def test_what_drivers_say(tmp_path: Path, driver: str) -> None:
    """Memory is a device's only where its driver says so, exact to the last byte."""
    name = driver.removesuffix(" before 6")
    assert say(ASK, build(tmp_path, driver), 0) == [
        "no driver None",
        "unknown None",
        "host None None",
        f"device {name} None",
        "managed None None",
    ]


@pytest.mark.parametrize(
    ("name", "mode"), [("libcuda-1f2e3d4c.so.560.35", 0), ("wrapper.so", 256)]
)
def test_other_names(tmp_path: Path, name: str, mode: int) -> None:
    """A driver is found under a packager's name, or if loaded with RTLD_GLOBAL."""
    assert "device CUDA None" in say(ASK, build(tmp_path, "CUDA", name), mode)


def test_another_library(tmp_path: Path) -> None:
    """A library with a similar name is not taken for a driver."""
    for name in ("libcudart.so.12", "libcuda.so.1"):
        driver = "Level Zero" if name == "libcuda.so.1" else "CUDA"
        assert "device None None" in say(ASK, build(tmp_path, driver, name), 0)


def test_arrays(tmp_path: Path) -> None:
    """Arrays in device memory are refused, and no others."""
    said = say(GATHER, build(tmp_path, "CUDA"))
    refused = (
        "device buffer is not CPU-accessible: sendbuf lies in device memory, "
        "according to CUDA; mpimcast accepts buffers in host memory only"
    )
    assert said == ["host taken"] * 3 + [refused] * 3 + ["managed taken"] * 3
