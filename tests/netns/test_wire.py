# SPDX-License-Identifier: BSD-3-Clause
"""Traffic on the wire, as the ports of hosts and switches count it."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from job import Job, ours

from bench.testbed.cluster import Cluster

BLOCK = 512 << 10
pytestmark = pytest.mark.timeout(120)


@pytest.mark.parametrize("nranks", [4, 8])
def test_a_block_is_sent_once(cluster: Cluster, tmp_path: Path, nranks: int) -> None:
    """A rank sends its N bytes once, and the library causes no drops."""
    mishaps = [{"what": "meet", "rank": 0, "op": op} for op in (10, 20)]
    readings = []
    with Job(
        cluster, nranks, tmp_path, sizes=[BLOCK], repeat=21, mishaps=mishaps
    ) as job:
        for op in (10, 20):
            job.await_meeting(op)
            readings.append(cluster.ports())
            job.go(op)
        stats = ours(job.results(60))
    ten, twenty = readings
    ports = {name: twenty[name] - ten[name] for name in ten}
    sent = [ports[f"host{i}"].sent_bytes / 10 / BLOCK for i in range(nranks)]
    dropped = {name: port.dropped_frames for name, port in ports.items()}
    assert max(sent) <= 1.06, f"{sent} {dropped} {stats}"
    assert not any(dropped.values()), f"{sent} {dropped} {stats}"


def test_nothing_is_set_up_again(cluster: Cluster, tmp_path: Path) -> None:
    """Ranks do not use the MPI library's network from the second operation on."""
    mishaps = [{"what": "meet", "rank": 0, "op": op} for op in (1, 2, 12)]
    readings = []
    with Job(cluster, 4, tmp_path, sizes=[BLOCK], repeat=13, mishaps=mishaps) as job:
        job.await_meeting(1)
        with cluster.losing(range(4), traffic="tcp") as loss:
            for op in (1, 2, 12):
                job.await_meeting(op)
                readings.append(cluster.ports())
                if op == 12:
                    assert loss.dropped() == (0, 0)
                job.go(op)
        job.results(60)
    second, ten = (
        {name: after[name] - before[name] for name in after}
        for before, after in itertools.pairwise(readings)
    )
    for i in range(4):
        once = ten[f"host{i}"].sent_bytes / 10
        assert second[f"host{i}"].sent_bytes < 1.02 * once


def test_who_is_not_in_the_group_gets_nothing(cluster: Cluster, tmp_path: Path) -> None:
    """A switch that snoops forwards data only to members of the group."""
    with Job(
        cluster,
        2,
        tmp_path,
        sizes=[BLOCK],
        repeat=20,
        # During this pause the switch begins to snoop.
        mishaps=[
            {"what": "late", "rank": 0, "op": 5, "for_s": 1.5},
            {"what": "meet", "rank": 0, "op": 10},
        ],
    ) as job:
        job.await_meeting(10)
        before = cluster.ports()
        job.go(10)
        job.results(30)
    after = cluster.ports()
    assert (after["to1"] - before["to1"]).sent_bytes > 10 * BLOCK
    assert (after["to2"] - before["to2"]).sent_bytes < 0.01 * BLOCK
