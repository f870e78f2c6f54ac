# SPDX-License-Identifier: BSD-3-Clause
"""The wheel for aarch64, and the C library for aarch64 in an emulator."""

from __future__ import annotations

import zipfile
from pathlib import Path

import cmake
import pytest
import wheels
from support import BUILD, ROOT, require_tool, run, skip_or_fail

# Debian's package libc6-arm64-cross, on which its cross compiler depends.
LIBRARIES = Path("/usr/aarch64-linux-gnu")
# qemu does not know the socket options of multicast, such as IP_MULTICAST_IF.
SOCKETS = ("engine_test", "forward_", "kinds_test", "survey_test", "team_test", "udp_")
PROGRAMS = sorted(
    path.stem
    for path in (ROOT / "tests/c").glob("*_test.c")
    if not path.stem.startswith(SOCKETS)
)

pytestmark = pytest.mark.long


@pytest.mark.timeout(500)
def test_wheel(sdist: Path, tmp_path: Path) -> None:
    """The wheel is for aarch64, and links only glibc."""
    wheel = wheels.build_wheel(sdist, "aarch64", tmp_path)
    assert wheel.name.endswith("-cp310-abi3-manylinux_2_28_aarch64.whl")
    with zipfile.ZipFile(wheel) as archive:
        module = archive.extract("mpimcast/_core.abi3.so", tmp_path)
    read = run([require_tool("readelf"), "-h", "-d", module], limit_s=30)
    assert "AArch64" in read
    needed = {line.split("[")[1][:-1] for line in read.splitlines() if "NEEDED" in line}
    assert needed <= {"libc.so.6", "libpthread.so.0", "libdl.so.2"}  # all are glibc


@pytest.fixture(scope="module")
def built() -> Path:
    """Return a build of the tests; ctest runs its programs in the emulator."""
    emulator = require_tool("qemu-aarch64")
    if not LIBRARIES.is_dir():
        skip_or_fail("gcc-aarch64-linux-gnu is not installed")
    settings = {
        **wheels.definitions("aarch64", BUILD / "aarch64-headers"),
        "CMAKE_SYSTEM_NAME": "Linux",
        "CMAKE_BUILD_TYPE": "Release",
        "CMAKE_CROSSCOMPILING_EMULATOR": f"{emulator};-L;{LIBRARIES}",
        "MPIMCAST_TESTS": "ON",
    }
    return cmake.configure(
        "aarch64", *(f"{name}={value}" for name, value in settings.items())
    )


@pytest.mark.timeout(700)
@pytest.mark.parametrize("program", PROGRAMS)
def test_c(program: str, built: Path) -> None:
    """Each C test program succeeds on emulated aarch64."""
    cmake.program(built, program)
    ctest = [require_tool("ctest"), "--test-dir", built, "--output-on-failure"]
    run([*ctest, "-R", f"^{program}$", "--no-tests=error"], limit_s=610)
