# SPDX-License-Identifier: BSD-3-Clause
"""Chunks that the switch drops are repaired with few more bytes than were dropped."""

from __future__ import annotations

from pathlib import Path

import pytest
import support
from job import MPICH, OPENMPI, Job, summed_stats

from bench.testbed.cluster import BURST_BYTES, SINGLE_BURST_BYTES, Cluster
from bench.testbed.launcher import Launcher

BLOCK_BYTES = 256 << 10
FRAME_BYTES = 1514
pytestmark = pytest.mark.timeout(120)

# A busy machine may spoil some attempts.
ATTEMPTS = 5


@pytest.mark.parametrize(
    ("burst_bytes", "launcher"),
    [
        (SINGLE_BURST_BYTES, OPENMPI),
        (BURST_BYTES, OPENMPI),
        (SINGLE_BURST_BYTES, MPICH),
    ],
    ids=["datagrams", "batches", "mpich"],
)
def test_one_port(
    cluster: Cluster, tmp_path: Path, burst_bytes: int, launcher: Launcher
) -> None:
    """5 % loss at one port is repaired with at most 1.3 times the bytes that were lost.

    The port drops single datagrams, or the kernel's batches of them.
    """
    # The queues are so long that they drop nothing.
    cluster.shape(100, burst_bytes=burst_bytes, queue_bytes=8 << 20)
    with cluster.losing([1], 0.05, "udp") as loss:
        with Job(
            cluster, 4, tmp_path, launcher=launcher, sizes=[BLOCK_BYTES], repeat=20
        ) as job:
            stats = summed_stats(job.results(60))
        buffers, lost_bytes = loss.dropped()
    assert buffers > 0
    in_batches = burst_bytes > SINGLE_BURST_BYTES
    assert (lost_bytes > buffers * FRAME_BYTES) == in_batches
    assert stats["rx_repaired_chunks"] > 0
    assert stats["tx_repair_bytes"] <= 1.3 * lost_bytes, f"{lost_bytes} {stats}"


def test_all_ports(cluster: Cluster, tmp_path: Path) -> None:
    """5 % loss at every port, even of control messages and repairs, is repaired."""
    cluster.shape(100, burst_bytes=SINGLE_BURST_BYTES)
    with cluster.losing(range(4), 0.05, "udp") as loss:
        with Job(cluster, 4, tmp_path, sizes=[BLOCK_BYTES, 5000], repeat=10) as job:
            stats = summed_stats(job.results(60))
        assert loss.dropped()[0] > 0
    assert stats["rx_repaired_chunks"] > 0


@pytest.mark.timeout(ATTEMPTS * 60 + 60)
def test_small_buffers(cluster: Cluster, tmp_path: Path) -> None:
    """No chunk is lost where the kernel has its default limit of receive buffers.

    A rank that gets no processor for milliseconds cannot empty its buffer, so one
    success in several attempts is enough.
    """
    cluster.shape(None)
    shim = tmp_path / "small_buffers.so"
    source = Path(__file__).with_name("small_buffers.c")
    gcc = support.require_tool("gcc")
    support.run([gcc, "-shared", "-fPIC", "-O", "-o", shim, source], limit_s=30)
    lost = []
    for attempt in range(ATTEMPTS):
        with Job(
            cluster,
            4,
            tmp_path / f"{attempt}",
            variables={"LD_PRELOAD": str(shim)},
            sizes=[1 << 20],
            repeat=5,
        ) as job:
            lost.append(summed_stats(job.results(60))["rx_lost_chunks"])
        if lost[-1] == 0:
            return
    pytest.fail(f"chunks lost in each attempt: {lost}")
