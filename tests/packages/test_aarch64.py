# SPDX-License-Identifier: BSD-3-Clause
"""The wheel for aarch64, and the C library for aarch64 in an emulator."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import cmake
import pytest
import wheels
from support import BUILD, ROOT, require_tool, run, skip_or_fail

# Debian's package libc6-arm64-cross, on which its cross compiler depends.
LIBRARIES = Path("/usr/aarch64-linux-gnu")
CROSS = "aarch64-linux-gnu-gcc"
# qemu does not know the socket options of multicast, such as IP_MULTICAST_IF.
SOCKETS = ("engine_test", "forward_", "kinds_test", "survey_test", "team_test", "udp_")
# What a proxy consists of, on a network adapter's processors also for aarch64. These
# programs multicast on loopback, by a library that does without such options.
PROXY = (
    *("ring_test", "meeting_test", "server_test", "server_calls_test"),
    *("requests_test", "remote_calls_test", "proxy_test", "proxy_wraps_test"),
)
PROGRAMS = sorted(
    path.stem
    for path in (ROOT / "tests/c").glob("*_test.c")
    if not path.stem.startswith(SOCKETS) and path.stem not in PROXY
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


@pytest.fixture(scope="module")
def emulated(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str | Path]]:
    """Return a build for Debian on aarch64, and the emulator's command with options.

    QEMU 7 lets a load that acquires overtake a store that releases, which aarch64
    forbids: ring_test then loses rings. On one processor that does not show.
    """
    emulator, compiler = map(require_tool, ("qemu-aarch64", CROSS))
    one = [require_tool("taskset"), "-c", str(min(os.sched_getaffinity(0)))]
    if not (LIBRARIES / "include/stdio.h").exists():
        skip_or_fail("libc6-dev-arm64-cross is not installed")
    folder = tmp_path_factory.mktemp("aarch64")
    settings = {
        "CMAKE_MAKE_PROGRAM": require_tool("ninja"),
        "CMAKE_SYSTEM_NAME": "Linux",
        "CMAKE_SYSTEM_PROCESSOR": "aarch64",
        "CMAKE_C_COMPILER": compiler,
        "CMAKE_BUILD_TYPE": "Release",
        "MPIMCAST_HAS_VERBS": "OFF",
        "MPIMCAST_TESTS": "ON",
        "MPIMCAST_WERROR": "ON",
    }
    places = ["-G", "Ninja", "-S", ROOT / "ffi", "-B", folder]
    given = [f"-D{name}={value}" for name, value in settings.items()]
    run([require_tool("cmake"), *places, *given], limit_s=60)
    sockets = folder / "sockets.so"
    source = Path(__file__).with_name("emulated_sockets.c")
    run([compiler, "-shared", "-fPIC", "-O2", source, "-o", sockets], limit_s=60)
    return folder, [*one, emulator, "-L", LIBRARIES, "-E", f"LD_PRELOAD={sockets}"]


@pytest.mark.timeout(400)
@pytest.mark.parametrize("name", PROXY)
def test_proxy(name: str, emulated: tuple[Path, list[str | Path]]) -> None:
    """A proxy's parts work on emulated aarch64, with datagrams that are multicast."""
    folder, emulator = emulated
    said = run([*emulator, cmake.program(folder, name)], limit_s=130)
    assert " passed, 0 failed" in said
