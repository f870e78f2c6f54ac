# SPDX-License-Identifier: BSD-3-Clause
"""Functions that build the C library and its programs for the tests."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from support import BUILD, ROOT, require_tool, run, run_unchecked


@cache
def configure(name: str, *definitions: str) -> Path:
    """Configure ffi/, build all its targets, and return the folder of the build.

    This is done once in a test run, on all cores. A target that does not build is no
    error here: program() reports it to the test that needs it.

    Parameters
    ----------
    name
        Name of the build's folder below build/.
    *definitions
        CMake variables, each as ``NAME=VALUE``.
    """
    folder = BUILD / name
    cmake = require_tool("cmake")
    ninja = f"CMAKE_MAKE_PROGRAM={require_tool('ninja')}"
    settings = [f"-D{text}" for text in (ninja, "MPIMCAST_WERROR=ON", *definitions)]
    places = ["-G", "Ninja", "-S", ROOT / "ffi", "-B", folder]
    run([cmake, *places, *settings], limit_s=60)
    run_unchecked([cmake, "--build", folder, "--", "-k", "0"], limit_s=300)
    return folder


def program(folder: Path, name: str) -> Path:
    """Build a program if it is out of date, and return its path.

    If the program does not build, the calling test fails.
    """
    run([require_tool("cmake"), "--build", folder, "--target", name], limit_s=300)
    return folder / name
