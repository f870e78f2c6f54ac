# SPDX-License-Identifier: BSD-3-Clause
"""Every byte is right over a network, whatever the sizes and the launcher."""

from __future__ import annotations

from pathlib import Path

import pytest
from job import LAUNCHERS, MPICH, OPENMPI, Job, ours

from bench.testbed.cluster import Cluster
from bench.testbed.launcher import Launcher

CHUNK = 1456  # what a frame of 1514 bytes carries
SIZES = [
    *(1, CHUNK - 1, CHUNK, CHUNK + 1, 20 * CHUNK, 20 * CHUNK + 1),
    *(65536, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, 0, 7),
]
pytestmark = pytest.mark.timeout(90)


@pytest.mark.parametrize("launcher", LAUNCHERS)
@pytest.mark.parametrize("nranks", [2, 4, 8])
def test_sizes(
    cluster: Cluster, tmp_path: Path, nranks: int, launcher: Launcher
) -> None:
    """Blocks around the sizes of chunks and batches, and large ones, arrive intact."""
    cluster.shape(None)
    sizes = SIZES if launcher is OPENMPI else SIZES[:8]
    with Job(cluster, nranks, tmp_path, launcher=launcher, sizes=sizes) as job:
        results = job.results(60)
    assert {result["host"] for result in results.values()} == {
        f"host{number}" for number in range(nranks)
    }
    # Operations of empty blocks count as epochs too.
    assert ours(results)["epochs"] == nranks * len(sizes)


def test_communicators(cluster: Cluster, tmp_path: Path) -> None:
    """Communicators used at once, in another order on each rank, all complete."""
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
    """10,000 operations back to back, eager and behind the barrier, all complete."""
    cluster.shape(None)
    # A block of one datagram precedes the barrier if all blocks fit EAGER_BYTES.
    sizes = [64, 1, 1000, 1001, CHUNK, 999, 0, CHUNK + 1]
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
    assert ours(results)["epochs"] == 4 * 10_000
