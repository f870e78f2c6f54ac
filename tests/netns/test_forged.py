# SPDX-License-Identifier: BSD-3-Clause
"""Datagrams that a stranger sends to a job's group are dropped and counted."""

from __future__ import annotations

from pathlib import Path

import pytest
from job import LAUNCHERS, Job
from stranger import meetings, overflowed, send_between

from bench.testbed.cluster import Cluster, address
from bench.testbed.launcher import Launcher

NRANKS = 4
# Forged datagrams arrive between these operations.
BEGIN, END = 5, 300
# The counters of datagrams that change nothing, by reason.
DROPPED = (
    "rx_foreign_datagrams",
    "rx_corrupt_datagrams",
    "rx_malformed_datagrams",
    "rx_filtered_datagrams",
    "rx_duplicate_chunks",
    "rx_unparked_datagrams",
)
pytestmark = pytest.mark.timeout(120)


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_forged(
    cluster: Cluster, tmp_path: Path, launcher: Launcher, long: bool, seed: int
) -> None:
    """Datagrams that are replayed, or wrong in some field, change no byte.

    Either a rank counts a datagram, or the kernel dropped it because a receive buffer
    was full. More than a third must be counted as foreign to the job, or be filtered;
    what the filter has dropped is estimated, with a deviation of 8 * sqrt(count).
    """
    cluster.shape(None)
    count = 100_000 if long else 12_000
    overflowed_before = [overflowed(host) for host in cluster.hosts[:NRANKS]]
    with Job(
        cluster,
        NRANKS,
        tmp_path,
        launcher=launcher,
        sizes=[20_000],
        repeat=END + 20,
        # Checksums and tags would find every change, and nothing else be tested.
        settings={"checksum": "off", "protect": "off"},
        mishaps=meetings(BEGIN, END),
    ) as job:
        sent = send_between(
            job, cluster, "forge.py", BEGIN, END, address(0), count, seed
        )
        results = job.results(60)
    assert sum(sent.values()) == count
    # Rank 0 is left out: its kernel drops what claims to come from its own address.
    for number in range(1, NRANKS):
        stats = results[number]["stats"]
        by_kernel = overflowed(cluster.hosts[number]) - overflowed_before[number]
        by_rank = sum(stats[name] for name in DROPPED)
        filtered = stats["rx_filtered_datagrams"]
        foreign = stats["rx_foreign_datagrams"] + filtered
        error = 48 * count**0.5 if filtered else 0
        assert by_rank + by_kernel >= count - error, f"{by_kernel} {stats}"
        assert foreign + by_kernel > count // 3, f"{by_kernel} {stats}"
