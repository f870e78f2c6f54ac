# SPDX-License-Identifier: BSD-3-Clause
"""Operations progress while all ranks compute in Python."""

from __future__ import annotations

import statistics
from pathlib import Path

import pytest
from job import LAUNCHERS, Job

from bench.testbed.cluster import Cluster
from bench.testbed.launcher import Launcher

RATE_MBIT = 20
BLOCK_BYTES = 128 << 10
pytestmark = pytest.mark.timeout(90)


class Overlap(Job):
    """Ranks that compute in Python while operations are under way."""

    program = Path(__file__).with_name("overlap.py")


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_computing_hides_operations(
    cluster: Cluster, tmp_path: Path, launcher: Launcher
) -> None:
    """At least 80 % of an operation's time is hidden behind a loop of Python.

    The loop never gives the interpreter to another thread. It lasts twice as long as
    the operation takes by itself, to allow for a busy machine.
    """
    nranks = 3
    cluster.shape(RATE_MBIT)
    with Overlap(
        cluster, nranks, tmp_path, launcher=launcher, nbytes=BLOCK_BYTES, turns=5
    ) as job:
        results = job.results(60)
    link_s = (nranks - 1) * BLOCK_BYTES * 8 / RATE_MBIT / 1e6
    for result in results.values():
        assert result["blocked_s"] > 0.8 * link_s, results
        assert statistics.median(result["hidden"]) >= 0.8, results
