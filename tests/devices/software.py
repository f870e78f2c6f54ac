# SPDX-License-Identifier: BSD-3-Clause
"""Builds the device in software, as a library with the name of a driver's."""

from __future__ import annotations

from pathlib import Path

import support

HERE = Path(__file__).parent
# The name of each driver's library, and what the software is built with.
LIBRARIES = {"CUDA": ("libcuda.so.1", ()), "HIP": ("libamdhip64.so.6", ("-DHIP",))}


def build(folder: Path, driver: str) -> Path:
    """Build the software as the library of a driver; return the library's path."""
    name, defines = LIBRARIES[driver]
    compiler = support.require_tool("gcc")
    options = ("-std=c11", "-D_GNU_SOURCE", "-O1", "-g", "-Wall", "-Wextra", "-Werror")
    options += ("-shared", "-fPIC", "-pthread", *defines)
    made, sources = folder / name, sorted(HERE.glob("*.c"))
    support.run([compiler, *options, "-o", made, *sources], limit_s=120)
    return made
