# SPDX-License-Identifier: BSD-3-Clause
"""The programs of tests/verbs/c succeed on the guest's devices.

The address sanitizer needs more address space than the guest has. So the programs run
with the sanitizer of undefined behaviour, and under valgrind for all other errors.
"""

from __future__ import annotations

import cmake
import pytest
import support

from bench.guest.guest import Guest

PROGRAMS = sorted(path.stem for path in (support.ROOT / "tests/verbs/c").glob("*.c"))

# Memory that libraries keep is only "possibly lost", which is no error here.
LEAKS = ("--leak-check=full", "--errors-for-leak-kinds=definite")


@pytest.mark.parametrize(
    "program",
    [
        # This program opens some hundred endpoints.
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
    """The program accesses only its own memory, and leaks none."""
    valgrind = support.require_tool("valgrind")
    folder = cmake.configure("verbs-plain", "MPIMCAST_VERBS_TESTS=ON")
    memcheck = [valgrind, "-q", "--error-exitcode=9", *LEAKS]
    guest.run([*memcheck, cmake.program(folder, program)], limit_s=250)
