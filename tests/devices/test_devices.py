# SPDX-License-Identifier: BSD-3-Clause
"""Collectives of arrays on devices: in software, or with --gpu on real ones."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from ctypes.util import find_library
from pathlib import Path
from typing import NamedTuple

import pytest
import software
import support

HERE = Path(__file__).parent
TRANSPORTS = ("shm", "udp")

# Cases in this order: once a driver is open, it stays open, and a device that has
# failed stays so.
FIRST = ("communicators_opened_without_devices",)
CASES = (
    "pinned_memory_is_bounded",
    "steps_overlap",
    "small_ones_are_the_librarys",
    "requests_of_the_library_are_refused",
    "both_ways_are_tried",
    "everything_is_the_librarys",
    "views_of_a_devices_memory",
    "gaps_are_refused",
    "datatypes_of_the_host",
    "results_that_ranks_share",
)
OF_SHM = ("without_a_progress_thread",)  # over udp operations need the thread
OF_CUDA = ("memory_of_a_pool",)
OF_SOFTWARE = ("a_missing_wait_is_noticed", "a_copy_fails_on_one_rank")


class Driver(NamedTuple):
    """A driver: its name, its library, and whether it is the software."""

    name: str
    library: str
    is_software: bool


@pytest.fixture(scope="module", params=["CUDA", "HIP"])
def driver(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Driver:
    """Return a driver: the software in its place, or with --gpu the real one."""
    name = request.param
    if not request.config.getoption("--gpu"):
        folder = tmp_path_factory.mktemp(name)
        return Driver(name, str(software.build(folder, name)), is_software=True)
    library = find_library({"CUDA": "cuda", "HIP": "amdhip64"}[name])
    if library is None:
        pytest.skip(f"this machine has no driver of {name} devices")
    return Driver(name, library, is_software=False)


def variables(driver: Driver) -> dict[str, str]:
    """Return the variables of programs that use a driver."""
    return {
        "MPIMCAST_TEST_DRIVER": driver.library,
        "DEVICE_SEED": str(support.choose_seed()),
        "DEVICE_DELAY_US": "300",
        "PYTHONPATH": str(HERE),
    }


def run_ranks(
    nranks: int, driver: Driver, *arguments: object, **env: str
) -> tuple[int, str]:
    """Run Python with these arguments on ranks; return the status and all output."""
    command = [*support.mpirun(nranks), *map(str, arguments)]
    env = {**variables(driver), **env}
    return support.run_unchecked(command, limit_s=280, **env)


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_random(driver: Driver, transport: str, *, long: bool) -> None:
    """Collectives of all forms are right wherever the ranks' buffers lie."""
    if driver.name == "HIP" and driver.is_software and transport == "udp":
        pytest.skip("the software differs from that for CUDA in names only")
    ncases = 2000 if long else 100
    seed = support.choose_seed()
    program = (HERE / "random_rank.py", seed, ncases, f"transport={transport}")
    status, said = run_ranks(3, driver, *program)
    assert status == 0, said
    assert said.count(f"{ncases} cases are right") == 3


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_cases(driver: Driver, transport: str) -> None:
    """Each case of cases_rank.py passes on two ranks."""
    if driver.name == "HIP" and driver.is_software:
        pytest.skip("the software differs from that for CUDA in names only")
    cases = FIRST + CASES
    cases += OF_SHM if transport == "shm" else ()
    cases += OF_CUDA if driver.name == "CUDA" else ()
    cases += OF_SOFTWARE if driver.is_software else ()
    status, said = run_ranks(2, driver, HERE / "cases_rank.py", transport, *cases)
    assert status == 0, said
    for case in cases:
        assert said.count(f"{case} passed") == 2, said


def test_run(driver: Driver) -> None:
    """A program of mpi4py alone passes its arrays under `run`."""
    program = ("-m", "mpimcast", "run", HERE / "plain_rank.py")
    status, said = run_ranks(2, driver, *program, MPIMCAST_CHOICE="always")
    assert status == 0, said
    assert said.count("right, by mpimcast") == 2, said


def touch(driver: Driver, how: str) -> subprocess.CompletedProcess[str]:
    """Print the only byte of an array, which is 7, in a process of its own."""
    program = f"""
import arrays, ctypes, numpy
array = arrays.Array(arrays.open_driver(), 1)
array.write(numpy.full(1, 7, numpy.uint8))
array.driver.synchronize(array.stream)
print({how})
"""
    return subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env={**os.environ, **variables(driver)},
        check=False,
        timeout=60,
    )


def test_the_host_cannot_touch_the_device(driver: Driver) -> None:
    """The software's copies find the bytes in its memory, but the host does not."""
    if not driver.is_software:
        pytest.skip("what a real device does is not ours to test")
    assert touch(driver, "array.read()[0]").stdout == "7\n"
    done = touch(driver, "ctypes.string_at(array.address, 1)")
    assert done.returncode == -signal.SIGSEGV
