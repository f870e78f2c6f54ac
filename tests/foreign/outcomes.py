# SPDX-License-Identifier: BSD-3-Clause
"""A pytest plugin with which each rank writes the outcomes of its tests.

``OUTCOMES`` names the folder; a rank's file in it is ``RANK.json``.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

_RANKS = ("OMPI_COMM_WORLD_RANK", "PMI_RANK")  # of Open MPI's and MPICH's launchers

_outcomes: dict[str, str] = {}


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Record a test's outcome, or its setup's or teardown's if that did not pass."""
    if report.when == "call" or report.outcome != "passed":
        _outcomes[report.nodeid] = report.outcome


def pytest_sessionfinish() -> None:
    """Write all outcomes."""
    rank = next(os.environ[name] for name in _RANKS if name in os.environ)
    path = Path(os.environ["OUTCOMES"], f"{rank}.json")
    path.write_text(json.dumps(_outcomes))
