# SPDX-License-Identifier: BSD-3-Clause
"""On an emulated machine the firmware misses no bell, and its fences order memory."""

from __future__ import annotations

import subprocess
from pathlib import Path

import cmake
import image
from support import run

# Many sleeps are needed: a bell could be missed only within a few instructions of each.
SLEEPS = 50_000


def test_bells() -> None:
    """Each sleep ends while more bells wait than the machine can take in at once."""
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
    """If machine and host each write and then read, one of them sees the other's."""
    folder = cmake.configure(
        "asan", "MPIMCAST_TESTS=ON", "MPIMCAST_SANITIZE=address,undefined"
    )
    firmware = image.build() / "fences.elf"
    said = run([cmake.program(folder, "fences"), firmware], limit_s=100)
    assert said == "0 rounds missed\n"
