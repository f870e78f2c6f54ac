# SPDX-License-Identifier: BSD-3-Clause
"""The programs of tests/c, under the sanitizers."""

from __future__ import annotations

import cmake
import pytest
from support import ROOT, require_tool, run

PROGRAMS = sorted(path.stem for path in (ROOT / "tests/c").glob("*_test.c"))
# For each build, the sanitizers that its programs run under.
SANITIZERS = {
    "asan": "address,undefined",
    "tsan": "thread",
}


@pytest.mark.timeout(700)
@pytest.mark.parametrize(
    "build", ["asan", pytest.param("tsan", marks=pytest.mark.long)]
)
@pytest.mark.parametrize("program", PROGRAMS)
def test_c(program: str, build: str) -> None:
    """Each program builds without a warning, and passes under the sanitizers."""
    sanitize = f"MPIMCAST_SANITIZE={SANITIZERS[build]}"
    folder = cmake.configure(build, "MPIMCAST_TESTS=ON", sanitize)
    cmake.program(folder, program)
    ctest = [require_tool("ctest"), "--test-dir", folder, "--output-on-failure"]
    run([*ctest, "-R", f"^{program}$", "--no-tests=error"], limit_s=310)
