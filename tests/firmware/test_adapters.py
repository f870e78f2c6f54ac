# SPDX-License-Identifier: BSD-3-Clause
"""Ranks whose operations the firmware of emulated network adapters carries out."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

import cmake
import image
import pytest
import run_mpi
from support import require_tool

# The tests of tests/mpi/test_proxy*.py that are about results, not about processes.
RESULTS = "results or settings or many or derived or large or adapter"
# Of these, some that cover every form of a collective, and losses.
SOME = (
    "explain_adapters or stops or test_many_at_once or test_derived or test_large "
    "or (test_results and dup and loss) or (test_settings and odd)"
)

ENDS_S = 20


@contextmanager
def adapters(mode: str) -> Iterator[str]:
    """Run emulated adapters that place payloads in this way; yield their name."""
    require_tool("qemu-system-riscv64")
    folder = cmake.configure(
        "asan", "MPIMCAST_TESTS=ON", "MPIMCAST_SANITIZE=address,undefined"
    )
    name = f"test-{os.getpid()}-{time.time_ns():x}"
    command = [
        cmake.program(folder, "adapter"),
        name,
        image.build() / "runner.elf",
        mode,
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "listening\n"
            yield name
            process.send_signal(signal.SIGTERM)
            assert process.wait(ENDS_S) == 0
        finally:
            process.kill()


@pytest.mark.timeout(run_mpi.RUN_LIMIT_S + 60)
@pytest.mark.parametrize("mode", ["copy", "dma"])
def test_results(mode: str, long: bool) -> None:
    """Unmodified programs get the MPI library's results from adapters on 4 ranks.

    In some communicators all ranks have adapters, in others some have, and of the rest
    one has a proxy. Once all have detached, the adapters end without a complaint of the
    sanitizers.
    """
    with adapters(mode) as name:
        chosen = ["--adapter", name, "-k", RESULTS if long else SOME]
        status, report = run_mpi.run_size(4, chosen, tests=("tests/mpi/test_proxy.py",))
    if status != 0:
        pytest.fail(report, pytrace=False)
