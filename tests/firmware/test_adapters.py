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
from typing import NamedTuple

import cmake
import image
import pytest
import run_mpi
from support import require_tool

TESTS = ("tests/mpi/test_proxy.py", "tests/mpi/test_proxy_end.py")
# Those of them that are not about the processes of proxies.
RESULTS = "results or settings or many or derived or large or adapter"
# Some that cover every form of a collective, and losses.
LOSSES = "(test_results and dup and loss)"


class Case(NamedTuple):
    """Adapters to be tested.

    Attributes
    ----------
    mode
        The way in which payloads are placed.
    harts
        How many harts the processor has; there are as many subgroups.
    some
        The tests that they pass, unless all are run.
    """

    mode: str
    harts: int
    some: str

    def __str__(self) -> str:
        """Return the test's name."""
        return f"{self.mode}-{self.harts}"


CASES = (
    Case("copy", 1, f"{LOSSES} and odd"),
    Case("dma", 1, "stops or test_large or (test_settings and odd)"),
    Case("dma", 3, f"{LOSSES} and all"),
    Case("uc", 1, "test_large or derived"),
    Case("uc", 2, f"adapters or many or ({LOSSES} and all)"),
)
# Whether the device places payloads, and whether it writes them as they arrive.
WAYS = {"copy": (False, False), "dma": (True, False), "uc": (True, True)}

ENDS_S = 20


@contextmanager
def adapters(mode: str, harts: int, *stop: str) -> Iterator[str]:
    """Run emulated adapters, yield their name, and end them.

    In the end, payloads must have gone the way of the mode and no other, and to every
    hart.
    """
    require_tool("qemu-system-riscv64")
    folder = cmake.configure(
        "asan", "MPIMCAST_TESTS=ON", "MPIMCAST_SANITIZE=address,undefined"
    )
    name = f"test-{os.getpid()}-{time.time_ns():x}"
    firmware = image.build() / "runner.elf"
    command = [
        cmake.program(folder, "adapter"),
        name,
        firmware,
        mode,
        str(harts),
        *stop,
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "listening\n"
            yield name
            process.send_signal(signal.SIGTERM)
            assert process.wait(ENDS_S) == 0
            counts = re.findall("[0-9]+", process.stdout.read())
            placed, written, *received = [int(count) > 0 for count in counts]
            # Chunks that the device has not written may have to be placed.
            assert (placed or written, written) == WAYS[mode]
            assert received == [True] * harts
        finally:
            process.kill()


def run_ranks(name: str, chosen: str, tests: tuple[str, ...]) -> None:
    """Have 4 ranks pass these of the tests with adapters."""
    status, report = run_mpi.run_size(4, ["--adapter", name, "-k", chosen], tests=tests)
    if status != 0:
        pytest.fail(report, pytrace=False)


@pytest.mark.timeout(run_mpi.RUN_LIMIT_S + 60)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_results(case: Case, long: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unmodified programs get the MPI library's results from adapters on 4 ranks.

    In some communicators all ranks have adapters, in others some have, and of the rest
    one has a proxy. Once all have detached, the adapters end without a complaint of the
    sanitizers.
    """
    monkeypatch.setenv("MPIMCAST_SUBGROUPS", str(case.harts))
    with adapters(case.mode, case.harts) as name:
        run_ranks(name, RESULTS if long else case.some, TESTS)


@pytest.mark.timeout(run_mpi.RUN_LIMIT_S + 60)
@pytest.mark.parametrize("mode", ["dma", "uc"])
def test_harts_that_stop(mode: str, long: bool) -> None:
    """If a hart of the processor stops, all ranks fail in time."""
    if mode == "dma" and not long:
        pytest.skip("runs with --long")
    with adapters(mode, 2, "500") as name:
        run_ranks(name, "stop", ("tests/mpi/test_harts.py",))
