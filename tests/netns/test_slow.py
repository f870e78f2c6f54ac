# SPDX-License-Identifier: BSD-3-Clause
"""Ranks that are slow hold nobody up for long, and fail nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from job import Job

from bench.cluster import Cluster

pytestmark = pytest.mark.timeout(60)


def check(
    cluster: Cluster, folder: Path, block_bytes: int, **mishap: Any
) -> dict[int, dict[str, Any]]:
    """Let a rank have a mishap; see that nothing fails."""
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
    """20 ms of every 100."""
    check(cluster, tmp_path, 512 << 10, what="pulse", op=2)


def test_late(cluster: Cluster, tmp_path: Path) -> None:
    """Later than TIMEOUT."""
    check(cluster, tmp_path, 512 << 10, what="late", op=5, for_s=3)


def test_stopped_sender(cluster: Cluster, tmp_path: Path) -> None:
    """For a second, before all of its block is sent."""
    check(cluster, tmp_path, 512 << 10, what="stop", op=5, for_s=1)


def test_stopped_receiver(cluster: Cluster, tmp_path: Path) -> None:
    """For a second; the others have all its data, and do not wait for it."""
    cluster.shape(50)
    results = check(cluster, tmp_path, 128 << 10, what="stop", op=5, for_s=1)
    others = [results[rank]["seconds"][5] for rank in (0, 2, 3)]
    assert max(others) < 0.5, others
