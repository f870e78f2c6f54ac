# SPDX-License-Identifier: BSD-3-Clause
"""The simulator tells how many bytes the cluster's links will carry."""

from __future__ import annotations

from pathlib import Path

import pytest
from job import Job

from bench.testbed.cluster import SINGLE_BURST_BYTES, Cluster
from bench.testbed.twin import counted_bytes, scene, simulate

BLOCK_BYTES = 256 << 10
WARM, COUNTED = 3, 8
RATE_MBIT = 200
CLOSE = 0.02
pytestmark = pytest.mark.timeout(180)


@pytest.mark.parametrize("nranks", [4, 8])
@pytest.mark.parametrize("loss", [0.0, 0.01], ids=["healthy", "lossy"])
def test_bytes(cluster: Cluster, tmp_path: Path, nranks: int, loss: float) -> None:
    """Simulated and counted bytes of all links differ by 2 % at most."""
    # With so short a burst, single datagrams are lost, as they are simulated.
    cluster.shape(RATE_MBIT, burst_bytes=SINGLE_BURST_BYTES, queue_bytes=8 << 20)
    mishaps = [{"what": "meet", "rank": 0, "op": op} for op in (WARM, WARM + COUNTED)]
    readings = []
    with (
        cluster.losing(range(nranks), loss, "udp"),
        Job(
            cluster,
            nranks,
            tmp_path,
            sizes=[BLOCK_BYTES],
            repeat=WARM + COUNTED + 1,
            settings={"protect": "off"},
            mishaps=mishaps,
        ) as job,
    ):
        for op in (WARM, WARM + COUNTED):
            job.await_meeting(op)
            readings.append(cluster.ports())
            job.go(op)
        job.results(120)
    before, after = readings
    counted = sum(
        (after[name] - before[name]).sent_bytes
        for i in range(nranks)
        for name in (f"host{i}", f"to{i}")
    )
    place = scene(nranks, RATE_MBIT, loss)
    result = simulate(place, nranks, BLOCK_BYTES, nops=COUNTED)
    assert counted_bytes(result, loss) == pytest.approx(counted, rel=CLOSE)
