# SPDX-License-Identifier: BSD-3-Clause
"""Ranks of a host share arrays, into which results of other hosts arrive once."""

from __future__ import annotations

from pathlib import Path

import pytest
from job import Sharing, briefly, summed_stats

from bench.testbed.cluster import Cluster

# By name, the number of each rank's host. In the last, a rank is alone.
MAPPINGS = {
    "block": [0, 0, 1, 1],
    "cyclic": [0, 1, 0, 1],
    "uneven": [1, 0, 1, 1, 2],
}
pytestmark = pytest.mark.timeout(120)


@pytest.mark.parametrize("mapping", briefly(MAPPINGS, brief=["block", "uneven"]))
def test_results(cluster: Cluster, tmp_path: Path, mapping: str) -> None:
    """Results are right, and not torn while others go on, though a host loses some."""
    places = MAPPINGS[mapping]
    cluster.shape(500, burst_bytes=4000)
    with (
        cluster.losing([1], 0.05, "multicast"),
        Sharing(cluster, places, tmp_path) as job,
    ):
        stats = summed_stats(job.results(90))
    assert stats["node_operations"] > 0
    assert stats["rx_lost_chunks"] > 0
    if mapping == "block":
        # Where each host's blocks are one range, nothing passes through the segment.
        assert stats["node_tx_bytes"] == stats["node_rx_bytes"] == 0


@pytest.mark.parametrize("culprit", [0, 3])
def test_private_memory(cluster: Cluster, tmp_path: Path, culprit: int) -> None:
    """If a rank passes private memory, the ranks of all hosts raise, and none waits."""
    with Sharing(cluster, MAPPINGS["block"], tmp_path, culprit=culprit) as job:
        results = job.results(90)
    errors = [result["error"] for result in results.values()]
    assert all(errors), errors
    assert any(f"private memory on rank {culprit}" in error for error in errors), errors
