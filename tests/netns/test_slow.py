# SPDX-License-Identifier: BSD-3-Clause
"""A slow rank delays the others only briefly, and fails no operation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from job import Job

from bench.testbed.cluster import Cluster

pytestmark = pytest.mark.timeout(60)


def check(
    cluster: Cluster, folder: Path, block_bytes: int, **mishap: Any
) -> dict[int, dict[str, Any]]:
    """Run a job in which rank 1 has a mishap; check that nothing fails."""
    with Job(
        cluster,
        4,
        folder,
        sizes=[block_bytes],
        repeat=12,
        settings={"timeout": 2},
        mishaps=[{"rank": 1, **mishap}],
    ) as job:
        results = job.results(30)
    assert [len(result["seconds"]) for result in results.values()] == [12] * 4
    return results


def test_descheduled(cluster: Cluster, tmp_path: Path) -> None:
    """A rank that is stopped for 20 ms of every 100 fails no operation."""
    check(cluster, tmp_path, 512 << 10, what="pulse", op=2)


def test_late(cluster: Cluster, tmp_path: Path) -> None:
    """A rank that enters later than TIMEOUT fails no operation."""
    check(cluster, tmp_path, 512 << 10, what="late", op=5, for_s=3)


def test_stopped_sender(cluster: Cluster, tmp_path: Path) -> None:
    """A rank stopped for a second before its block is sent fails no operation."""
    check(cluster, tmp_path, 512 << 10, what="stop", op=5, for_s=1)


def test_stopped_receiver(cluster: Cluster, tmp_path: Path) -> None:
    """Ranks do not wait for a stopped receiver whose data they all have."""
    cluster.shape(50)
    results = check(cluster, tmp_path, 128 << 10, what="stop", op=5, for_s=1)
    others = [results[rank]["seconds"][5] for rank in (0, 2, 3)]
    assert max(others) < 0.5, others
