# SPDX-License-Identifier: BSD-3-Clause
"""Builds of the C library for the tests."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from support import BUILD, ROOT, require_tool, run, run_unchecked


@cache
def configure(name: str, *definitions: str) -> Path:
    """Configure and build ffi/ below build/, and return the build's folder.

    The build is made once a run, on every core, and takes in every target; program()
    reports a target that does not build.

    Parameters
    ----------
    name
        The build's own folder.
    *definitions
        ``NAME=VALUE``, as after CMake's ``-D``.
    """
    folder = BUILD / name
    cmake = require_tool("cmake")
    ninja = f"CMAKE_MAKE_PROGRAM={require_tool('ninja')}"
    settings = [f"-D{text}" for text in (ninja, "MPIMCAST_WERROR=ON", *definitions)]
    tree = ["-G", "Ninja", "-S", ROOT / "ffi", "-B", folder]
    run([cmake, *tree, *settings], limit_s=60)
    run_unchecked([cmake, "--build", folder, "--", "-k", "0"], limit_s=300)
    return folder


def program(folder: Path, name: str) -> Path:
    """Return a program of a build; fail the calling test if it does not build."""
    run([require_tool("cmake"), "--build", folder, "--target", name], limit_s=300)
    return folder / name
