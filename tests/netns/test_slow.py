# SPDX-License-Identifier: BSD-3-Clause
"""A slow rank delays the others no longer than necessary, and no operation fails."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from job import Job

from bench.testbed.cluster import Cluster

pytestmark = pytest.mark.timeout(60)


NRANKS = 4
SLOW = 1  # the slow rank
OP = 5  # the operation in which it is slow
NOPS = 12


def run_with_mishap(
    cluster: Cluster, folder: Path, block_bytes: int, **mishap: Any
) -> dict[int, dict[str, Any]]:
    """Run a job in which the slow rank has a mishap; check that nothing fails.

    Return the ranks' results.
    """
    with Job(
        cluster,
        NRANKS,
        folder,
        sizes=[block_bytes],
        repeat=NOPS,
        settings={"timeout": 2},
        mishaps=[{"rank": SLOW, **mishap}],
    ) as job:
        results = job.results(30)
    nops = [len(result["seconds"]) for result in results.values()]
    assert nops == [NOPS] * NRANKS
    return results


def test_descheduled(cluster: Cluster, tmp_path: Path) -> None:
    """No operation fails if a rank is stopped for 20 ms of every 100."""
    run_with_mishap(cluster, tmp_path, 512 << 10, what="pulse", op=2)


def test_late(cluster: Cluster, tmp_path: Path) -> None:
    """No operation fails if a rank enters later than the TIMEOUT of 2 s."""
    run_with_mishap(cluster, tmp_path, 512 << 10, what="late", op=OP, for_s=3)


def test_stopped_sender(cluster: Cluster, tmp_path: Path) -> None:
    """No operation fails if a rank is stopped for 1 s before its block is sent."""
    run_with_mishap(cluster, tmp_path, 512 << 10, what="stop", op=OP, for_s=1)


def test_stopped_receiver(cluster: Cluster, tmp_path: Path) -> None:
    """Once all other ranks have a stopped receiver's block, none waits for it.

    Links are so slow that the operation is still under way when the rank stops.
    """
    cluster.shape(50)
    results = run_with_mishap(cluster, tmp_path, 128 << 10, what="stop", op=OP, for_s=1)
    others_s = [
        result["seconds"][OP] for rank, result in results.items() if rank != SLOW
    ]
    assert max(others_s) < 0.5, others_s
