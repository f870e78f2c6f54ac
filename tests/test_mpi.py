# SPDX-License-Identifier: BSD-3-Clause
"""The tests of tests/mpi, run under mpirun once for each number of ranks."""

from __future__ import annotations

import pytest
import run_mpi


@pytest.mark.timeout(run_mpi.RUN_LIMIT_S + 30)
@pytest.mark.parametrize(
    "nranks",
    [
        *run_mpi.SIZES,
        *(pytest.param(each, marks=pytest.mark.long) for each in run_mpi.SIZES_LONG),
    ],
)
def test_mpi(nranks: int, long: bool) -> None:
    """All tests of tests/mpi pass on `nranks` ranks under Open MPI."""
    status, report = run_mpi.run_size(nranks, ["--long"] if long else [])
    if status != 0:
        pytest.fail(report, pytrace=False)


@pytest.mark.timeout(run_mpi.RUN_LIMIT_S + 30)
@pytest.mark.parametrize(
    ("library", "nranks"),
    [
        ("openmpi", 2),
        ("openmpi", 5),
        pytest.param("openmpi", 8, marks=pytest.mark.long),
        ("mpich", 3),
    ],
)
def test_compared_with_the_library(library: str, nranks: int) -> None:
    """Results equal the MPI library's on other numbers of ranks, and under MPICH."""
    status, report = run_mpi.run_size(
        nranks, [], library=library, tests=run_mpi.COMPARED
    )
    if status != 0:
        pytest.fail(report, pytrace=False)


@pytest.mark.timeout(run_mpi.RUN_LIMIT_S + 30)
@pytest.mark.parametrize(
    ("library", "nranks", "tests"),
    [
        ("openmpi", 3, ("tests/mpi",)),
        ("openmpi", 5, run_mpi.COMPARED),
        pytest.param("openmpi", 7, run_mpi.COMPARED, marks=pytest.mark.long),
        ("mpich", 3, run_mpi.COMPARED),
    ],
)
def test_in_shared_memory(library: str, nranks: int, tests: tuple[str, ...]) -> None:
    """The tests that need no network pass in memory that the ranks share."""
    status, report = run_mpi.run_size(nranks, ["--shm"], library=library, tests=tests)
    if status != 0:
        pytest.fail(report, pytrace=False)


@pytest.mark.timeout(run_mpi.RUN_LIMIT_S + 30)
@pytest.mark.parametrize(
    ("nranks", "chosen"),
    [
        (3, "explain or share or drain or killed or derived or many"),
        *(pytest.param(each, "proxy", marks=pytest.mark.long) for each in (3, 4)),
    ],
)
def test_proxies_under_mpich(nranks: int, chosen: str) -> None:
    """Ranks with proxies, and beside such ranks, get MPICH's results under it, too."""
    status, report = run_mpi.run_size(
        nranks, ["-k", chosen], library="mpich", tests=run_mpi.PROXIED
    )
    if status != 0:
        pytest.fail(report, pytrace=False)


@pytest.mark.timeout(run_mpi.RUN_LIMIT_S + 30)
@pytest.mark.parametrize("nranks", [pytest.param(2, marks=pytest.mark.long), 5])
def test_pairs_under_mpich(nranks: int) -> None:
    """Messages between two ranks pass under MPICH, too, where each has many peers."""
    status, report = run_mpi.run_size(
        nranks, [], library="mpich", tests=("tests/mpi/test_sdr.py",)
    )
    if status != 0:
        pytest.fail(report, pytrace=False)


@pytest.mark.timeout(run_mpi.RUN_LIMIT_S + 30)
@pytest.mark.parametrize("nranks", [pytest.param(2, marks=pytest.mark.long), 3])
def test_requests_under_mpich(nranks: int) -> None:
    """The tests of requests pass under MPICH too, whose own requests they then wrap."""
    status, report = run_mpi.run_size(
        nranks, ["-k", "test_requests or test_persistent"], library="mpich"
    )
    if status != 0:
        pytest.fail(report, pytrace=False)
