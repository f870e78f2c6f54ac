# SPDX-License-Identifier: BSD-3-Clause
"""A flood of junk changes no byte, fails no rank, and is accounted to who sends it."""

from __future__ import annotations

from pathlib import Path

import pytest
from job import Job
from stranger import meetings, overflowed, send_between

from bench.testbed.cluster import Cluster, address

NRANKS = 4
BEGIN, END = 5, 150
# The counters of junk, by cause.
REFUSED = (
    "rx_foreign_datagrams",
    "rx_corrupt_datagrams",
    "rx_malformed_datagrams",
    "rx_forged_datagrams",
    "rx_filtered_datagrams",
)
pytestmark = pytest.mark.timeout(240)


def test_flood(cluster: Cluster, tmp_path: Path, *, long: bool, seed: int) -> None:
    """Operations go on under a flood from a stranger's and from a rank's address.

    A rank counts each datagram of it, by cause or by an estimate of what its kernel has
    filtered, unless a receive buffer was full. It logs the stranger's address.
    """
    cluster.shape(None)
    count = 2_000_000 if long else 200_000
    before = [overflowed(host) for host in cluster.hosts[:NRANKS]]
    with Job(
        cluster,
        NRANKS,
        tmp_path,
        sizes=[100_000],
        repeat=END + 20,
        mishaps=meetings(BEGIN, END),
    ) as job:
        sent = send_between(
            job, cluster, "flood.py", BEGIN, END, address(0), count, seed
        )
        results = job.results(60)
        output = (tmp_path / "output").read_text()
    assert sent["sent"] == count
    # Rank 0 is left out: its kernel drops what claims to come from its own address.
    for number in range(1, NRANKS):
        stats = results[number]["stats"]
        refused = sum(stats[name] for name in REFUSED)
        by_kernel = overflowed(cluster.hosts[number]) - before[number]
        # The sample's deviation is 8 * sqrt(count).
        most_error = 8 * 6 * count**0.5
        assert refused <= count + most_error, f"{by_kernel} {stats}"
        assert refused + by_kernel >= count - most_error, f"{by_kernel} {stats}"
        assert stats["rx_filtered_datagrams"] > refused // 2, f"{by_kernel} {stats}"
    own = address(len(cluster.hosts) - 1)
    assert "datagrams that are not this job's" in output, output
    assert f"from {own}:" in output, output
