# SPDX-License-Identifier: BSD-3-Clause
"""The traffic that operations cause, counted at the ports of hosts and switches."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from job import Job, summed_stats

from bench.testbed.cluster import Cluster

BLOCK_BYTES = 512 << 10
pytestmark = pytest.mark.timeout(120)


@pytest.mark.parametrize(
    ("nranks", "protect", "most"),
    # A tag adds 24 bytes to each datagram of 1,500.
    [(4, "off", 1.06), (8, "off", 1.06), (8, "authenticate", 1.08)],
)
def test_a_block_is_sent_once(
    cluster: Cluster, tmp_path: Path, nranks: int, protect: str, most: float
) -> None:
    """In an operation, each host sends little more than its block; queues drop nothing.

    The ports are read before operations 10 and 20.
    """
    mishaps = [{"what": "meet", "rank": 0, "op": op} for op in (10, 20)]
    readings = []
    with Job(
        cluster,
        nranks,
        tmp_path,
        sizes=[BLOCK_BYTES],
        repeat=21,
        settings={"protect": protect},
        mishaps=mishaps,
    ) as job:
        for op in (10, 20):
            job.await_meeting(op)
            readings.append(cluster.ports())
            job.go(op)
        stats = summed_stats(job.results(60))
    before, after = readings
    ports = {name: after[name] - before[name] for name in before}
    sent = [ports[f"host{i}"].sent_bytes / 10 / BLOCK_BYTES for i in range(nranks)]
    dropped = {name: port.dropped_frames for name, port in ports.items()}
    assert max(sent) <= most, f"{sent} {dropped} {stats}"
    assert not any(dropped.values()), f"{sent} {dropped} {stats}"


def test_nothing_is_set_up_again(cluster: Cluster, tmp_path: Path) -> None:
    """The second operation costs no more traffic than later ones.

    Ranks do not use TCP, which carries the MPI library's messages.
    """
    mishaps = [{"what": "meet", "rank": 0, "op": op} for op in (1, 2, 12)]
    readings = []
    with Job(
        cluster, 4, tmp_path, sizes=[BLOCK_BYTES], repeat=13, mishaps=mishaps
    ) as job:
        job.await_meeting(1)
        with cluster.losing(range(4), traffic="tcp") as loss:
            for op in (1, 2, 12):
                job.await_meeting(op)
                readings.append(cluster.ports())
                if op == 12:
                    assert loss.dropped() == (0, 0)
                job.go(op)
        job.results(60)
    second, next_ten = (
        {name: after[name] - before[name] for name in after}
        for before, after in itertools.pairwise(readings)
    )
    for i in range(4):
        average_bytes = next_ten[f"host{i}"].sent_bytes / 10
        assert second[f"host{i}"].sent_bytes < 1.02 * average_bytes


def test_only_members_receive(cluster: Cluster, tmp_path: Path) -> None:
    """A switch that snoops IGMP forwards data to the job's hosts only."""
    with Job(
        cluster,
        2,
        tmp_path,
        sizes=[BLOCK_BYTES],
        repeat=20,
        # During the first pause, of 1.5 s, the switch begins to snoop.
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
    assert (after["to1"] - before["to1"]).sent_bytes > 10 * BLOCK_BYTES
    assert (after["to2"] - before["to2"]).sent_bytes < 0.01 * BLOCK_BYTES
