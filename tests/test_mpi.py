# SPDX-License-Identifier: BSD-3-Clause
"""Everything in tests/mpi, once for each number of ranks."""

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
