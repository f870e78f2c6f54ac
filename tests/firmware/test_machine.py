# SPDX-License-Identifier: BSD-3-Clause
"""The firmware's sleep and its rings, on an emulated machine, miss nothing."""

from __future__ import annotations

import subprocess
from pathlib import Path

import cmake
import image
from support import run

# So many sleeps, of which bells end each, that some bell comes at every moment of one.
SLEEPS = 50_000


def test_bells() -> None:
    """Each sleep ends, though more bells wait than the machine can take at once."""
    with Path("/dev/zero").open("rb") as bells:
        machine = subprocess.run(
            image.command("bells", SLEEPS),
            stdin=bells,
            capture_output=True,
            check=False,
            timeout=100,
        )
    assert machine.stdout == b"passed\n"


def test_fences() -> None:
    """Of the machine and the host one sees what the other shows before it looks."""
    folder = cmake.configure(
        "asan", "MPIMCAST_TESTS=ON", "MPIMCAST_SANITIZE=address,undefined"
    )
    firmware = image.build() / "fences.elf"
    said = run([cmake.program(folder, "fences"), firmware], limit_s=100)
    assert said == "0 rounds missed\n"
