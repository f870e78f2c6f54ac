# SPDX-License-Identifier: BSD-3-Clause
"""Ranks whose operations the firmware of emulated network adapters carries out."""

from __future__ import annotations

import os
import re
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

TESTS = ("tests/mpi/test_proxy.py", "tests/mpi/test_proxy_end.py")
# Those of them that are not about the processes of proxies.
RESULTS = "results or settings or many or derived or large or adapter"
# By the way in which payloads are placed: of these, some that cover every form of a
# collective, and losses.
LOSSES = "explain_adapters or test_large or (test_results and dup and loss)"
SOME = {
    "copy": LOSSES,
    "dma": f"{LOSSES} or stops or many or derived or (test_settings and odd)",
    "uc": f"{LOSSES} or many or (test_settings and all)",
}
# Whether the device places payloads, and whether it writes them as they arrive.
WAYS = {"copy": (False, False), "dma": (True, False), "uc": (True, True)}

ENDS_S = 20


@contextmanager
def adapters(mode: str) -> Iterator[str]:
    """Run emulated adapters that place payloads in this way; yield their name.

    In the end, payloads must have gone that way and no other.
    """
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
            counts = re.findall("[0-9]+", process.stdout.read())
            assert tuple(int(count) > 0 for count in counts) == WAYS[mode]
        finally:
            process.kill()


@pytest.mark.timeout(run_mpi.RUN_LIMIT_S + 60)
@pytest.mark.parametrize("mode", WAYS)
def test_results(mode: str, long: bool) -> None:
    """Unmodified programs get the MPI library's results from adapters on 4 ranks.

    In some communicators all ranks have adapters, in others some have, and of the rest
    one has a proxy. Once all have detached, the adapters end without a complaint of the
    sanitizers.
    """
    with adapters(mode) as name:
        chosen = ["--adapter", name, "-k", RESULTS if long else SOME[mode]]
        status, report = run_mpi.run_size(4, chosen, tests=TESTS)
    if status != 0:
        pytest.fail(report, pytrace=False)
