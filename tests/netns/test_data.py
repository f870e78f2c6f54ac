# SPDX-License-Identifier: BSD-3-Clause
"""Every byte is right over a network, at all sizes, under Open MPI and MPICH."""

from __future__ import annotations

from pathlib import Path

import pytest
from job import LAUNCHERS, MPICH, OPENMPI, Job, summed_stats

from bench.testbed.cluster import Cluster
from bench.testbed.launcher import Launcher

CHUNK_BYTES = 1456  # what a frame of 1514 bytes carries
# Bytes of blocks. The kernel takes chunks in batches of up to 20.
SIZES = [
    *(1, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1),
    *(20 * CHUNK_BYTES, 20 * CHUNK_BYTES + 1),
    *(65536, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, 0, 7),
]
pytestmark = pytest.mark.timeout(90)


@pytest.mark.parametrize("launcher", LAUNCHERS)
@pytest.mark.parametrize("nranks", [2, 4, 8])
def test_sizes(
    cluster: Cluster, tmp_path: Path, nranks: int, launcher: Launcher
) -> None:
    """Blocks of about one chunk, blocks of about one batch, and large blocks arrive."""
    cluster.shape(None)
    sizes = SIZES if launcher is OPENMPI else SIZES[:8]
    with Job(cluster, nranks, tmp_path, launcher=launcher, sizes=sizes) as job:
        results = job.results(60)
    assert {result["host"] for result in results.values()} == {
        f"host{number}" for number in range(nranks)
    }
    # Operations on empty blocks count too.
    assert summed_stats(results)["epochs"] == nranks * len(sizes)


def test_four_communicators_at_once(cluster: Cluster, tmp_path: Path) -> None:
    """Threads complete the operations of four communicators at once.

    Each rank begins with a different communicator.
    """
    cluster.shape(None)
    sizes = [3000, 100_000, 1 << 18]
    with Job(cluster, 4, tmp_path, sizes=sizes, repeat=5, ncomms=4) as job:
        results = job.results(60)
    assert [len(result["seconds"]) for result in results.values()] == [60] * 4


@pytest.mark.parametrize(
    "launcher",
    [
        pytest.param(OPENMPI, id="openmpi"),
        pytest.param(MPICH, id="mpich", marks=pytest.mark.long),
    ],
)
@pytest.mark.timeout(240)
def test_many_small(cluster: Cluster, tmp_path: Path, launcher: Launcher) -> None:
    """10,000 small operations complete back to back.

    Some are eager: their blocks are sent before the entry barrier, since each block is
    one chunk, and all four together fit EAGER_BYTES. The others wait for the barrier.
    """
    cluster.shape(None)
    sizes = [64, 1, 1000, 1001, CHUNK_BYTES, 999, 0, CHUNK_BYTES + 1]
    with Job(
        cluster,
        4,
        tmp_path,
        launcher=launcher,
        sizes=sizes,
        repeat=1250,
        settings={"eager_bytes": 4000},
    ) as job:
        results = job.results(200)
    assert summed_stats(results)["epochs"] == 4 * 10_000


@pytest.mark.parametrize("launcher", LAUNCHERS)
@pytest.mark.parametrize("loss", [0, 0.1])
def test_a_barrier_carries_small_blocks(
    cluster: Cluster, tmp_path: Path, launcher: Launcher, loss: float
) -> None:
    """The messages of the barrier carry small blocks, and no chunk is sent, ever.

    Ranks that wait for others may ask them besides; the simulator counts exactly.
    """
    cluster.shape(None)
    nranks, repeat, rounds = 5, 100, 3
    sizes = [1, 8, 64, 482]  # two blocks of the last are a message's limit
    with (
        cluster.losing([1, 3], loss, "unicast"),
        Job(
            cluster, nranks, tmp_path, launcher=launcher, sizes=sizes, repeat=repeat
        ) as job,
    ):
        stats = summed_stats(job.results(60))
    assert stats["epochs"] == nranks * repeat * len(sizes)
    assert stats["tx_multicast_datagrams"] == stats["tx_repair_datagrams"] == 0
    assert stats["tx_control_datagrams"] >= stats["epochs"] * rounds
