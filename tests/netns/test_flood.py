# SPDX-License-Identifier: BSD-3-Clause
"""A flood of junk changes no byte, fails no rank, and is accounted to who sends it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from job import Job
from test_forged import group_of, overflowed

from bench.testbed.cluster import Cluster, address

NRANKS = 4
BEGIN, END = 5, 150
# The counters of junk, by cause.
REFUSED = (
    "rx_foreign_datagrams",
    "rx_corrupt_datagrams",
    "rx_malformed_datagrams",
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
    stranger = cluster.hosts[-1]
    before = [overflowed(host) for host in cluster.hosts[:NRANKS]]
    mishaps = [{"what": "meet", "rank": 0, "op": op} for op in (BEGIN, END)]
    with Job(
        cluster,
        NRANKS,
        tmp_path,
        sizes=[100_000],
        repeat=END + 20,
        mishaps=mishaps,
    ) as job:
        job.await_meeting(BEGIN)
        group, port = group_of(cluster.hosts[0])
        program = Path(__file__).with_name("flood.py")
        arguments = [tmp_path, group, port, address(0), count, seed]
        flood = subprocess.Popen(
            [*stranger.enter(), sys.executable, program, *map(str, arguments)],
            stdout=subprocess.PIPE,
            text=True,
        )
        job.await_file("listening")
        job.go(BEGIN)
        sent, _ = flood.communicate(timeout=120)
        job.await_meeting(END)
        job.go(END)
        results = job.results(60)
        output = (tmp_path / "output").read_text()
    assert json.loads(sent)["sent"] == count
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
