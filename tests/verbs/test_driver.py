# SPDX-License-Identifier: BSD-3-Clause
"""The programs of tests/verbs/c, on the guest's devices.

The address sanitizer wants more address space than the guest has: of the sanitizers
there is only that of undefined behaviour, and valgrind looks for what else is wrong.
"""

from __future__ import annotations

import cmake
import pytest
import support

from bench.guest.guest import Guest

PROGRAMS = sorted(path.stem for path in (support.ROOT / "tests/verbs/c").glob("*.c"))

# What the libraries keep until the end is theirs, and only possibly lost.
LEAKS = ("--leak-check=full", "--errors-for-leak-kinds=definite")


@pytest.mark.parametrize(
    "program",
    [
        # It opens some hundred endpoints.
        pytest.param(name, marks=pytest.mark.long) if "setup" in name else name
        for name in PROGRAMS
    ],
)
def test_driver(program: str, guest: Guest) -> None:
    """The program exits with 0."""
    undefined = "MPIMCAST_SANITIZE=undefined"
    folder = cmake.configure("verbs", "MPIMCAST_VERBS_TESTS=ON", undefined)
    guest.run([cmake.program(folder, program)], limit_s=100)


@pytest.mark.long
@pytest.mark.timeout(300, func_only=True)
@pytest.mark.parametrize("program", PROGRAMS)
def test_memory(program: str, guest: Guest) -> None:
    """It reads and writes only what is its own, and frees it."""
    valgrind = support.require_tool("valgrind")
    folder = cmake.configure("verbs-plain", "MPIMCAST_VERBS_TESTS=ON")
    memcheck = [valgrind, "-q", "--error-exitcode=9", *LEAKS]
    guest.run([*memcheck, cmake.program(folder, program)], limit_s=250)
