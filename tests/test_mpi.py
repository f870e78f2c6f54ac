# SPDX-License-Identifier: BSD-3-Clause
"""All tests of tests/mpi per number of ranks; those of requests under MPICH too."""

from __future__ import annotations

import pytest
import run_mpi


@pytest.mark.timeout(run_mpi.RUN_LIMIT_S + 30)
@pytest.mark.parametrize("nranks", run_mpi.SIZES)
def test_mpi(nranks: int, long: bool) -> None:
    """The tests pass on `nranks` ranks."""
    status, report = run_mpi.run_size(nranks, ["--long"] if long else [])
    if status != 0:
        pytest.fail(report, pytrace=False)


@pytest.mark.timeout(run_mpi.RUN_LIMIT_S + 30)
@pytest.mark.parametrize(("library", "nranks"), [("openmpi", 8), ("mpich", 4)])
def test_surface(library: str, nranks: int) -> None:
    """Results equal the MPI library's on more ranks, and under another MPI library."""
    status, report = run_mpi.run_size(
        nranks, [], library=library, tests=run_mpi.SURFACE
    )
    if status != 0:
        pytest.fail(report, pytrace=False)


@pytest.mark.timeout(run_mpi.RUN_LIMIT_S + 30)
@pytest.mark.parametrize("nranks", [2, 3])
def test_requests_under_mpich(nranks: int) -> None:
    """Requests, which depend on the MPI library's own, work under MPICH too."""
    status, report = run_mpi.run_size(
        nranks, ["-k", "test_requests or test_persistent"], library="mpich"
    )
    if status != 0:
        pytest.fail(report, pytrace=False)
