# SPDX-License-Identifier: BSD-3-Clause
"""The programs of tests/verbs/c succeed on the guest's devices.

The address sanitizer needs more address space than the guest has. So each program runs
once with the sanitizer for undefined behaviour, and once under valgrind.
"""

from __future__ import annotations

import cmake
import pytest
import support

from bench.guest.guest import Guest

PROGRAMS = sorted(path.stem for path in (support.ROOT / "tests/verbs/c").glob("*.c"))

# Leaks are errors if valgrind is sure of them. Memory that libraries keep is only
# "possibly lost".
LEAKS = ("--leak-check=full", "--errors-for-leak-kinds=definite")


@pytest.mark.parametrize(
    "program",
    [
        # verbs_setup_test opens some hundred endpoints, which takes a long time.
        pytest.param(name, marks=pytest.mark.long) if "setup" in name else name
        for name in PROGRAMS
    ],
)
def test_driver(program: str, guest: Guest) -> None:
    """The program succeeds, and the sanitizer finds no undefined behaviour."""
    undefined = "MPIMCAST_SANITIZE=undefined"
    folder = cmake.configure("verbs", "MPIMCAST_VERBS_TESTS=ON", undefined)
    guest.run([cmake.program(folder, program)], limit_s=100)


@pytest.mark.long
@pytest.mark.timeout(300, func_only=True)
@pytest.mark.parametrize("program", PROGRAMS)
def test_memory(program: str, guest: Guest) -> None:
    """Valgrind finds no invalid use of memory in the program, and no leak."""
    valgrind = support.require_tool("valgrind")
    folder = cmake.configure("verbs-plain", "MPIMCAST_VERBS_TESTS=ON")
    memcheck = [valgrind, "-q", "--error-exitcode=9", *LEAKS]
    guest.run([*memcheck, cmake.program(folder, program)], limit_s=250)
