# SPDX-License-Identifier: BSD-3-Clause
"""Datagrams that a stranger sends to a job's group are dropped and counted."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from job import LAUNCHERS, Job

from bench.testbed.cluster import Cluster
from bench.testbed.host import Host
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


def group_of(host: Host) -> tuple[str, int]:
    """Return the multicast group and the port that a socket of the host is bound to."""
    for line in host.run("cat", "/proc/net/udp").splitlines()[1:]:
        address, port = line.split()[1].split(":")
        octets = [int(address[i : i + 2], 16) for i in (6, 4, 2, 0)]
        if octets[0] == 239:
            return ".".join(map(str, octets)), int(port, 16)
    raise AssertionError("no socket is bound to a group")


def overflowed(host: Host) -> int:
    """Return how many datagrams the host's kernel dropped before a socket got them."""
    names, values = (
        line.split()[1:]
        for line in host.run("cat", "/proc/net/snmp").splitlines()
        if line.startswith("Udp:")
    )
    counts = dict(zip(names, map(int, values), strict=True))
    return counts["RcvbufErrors"] + counts["IgnoredMulti"]


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
    mishaps = [{"what": "meet", "rank": 0, "op": op} for op in (BEGIN, END)]
    with Job(
        cluster,
        NRANKS,
        tmp_path,
        launcher=launcher,
        sizes=[20_000],
        repeat=END + 20,
        # Checksums would find every change, so that nothing else would be tested.
        settings={"checksum": "off"},
        mishaps=mishaps,
    ) as job:
        job.await_meeting(BEGIN)
        group, port = group_of(cluster.hosts[0])
        program = Path(__file__).with_name("forge.py")
        arguments = [tmp_path, group, port, "10.77.0.10", count, seed]
        forger = subprocess.Popen(
            [*cluster.hosts[-1].enter(), sys.executable, program, *map(str, arguments)],
            stdout=subprocess.PIPE,
            text=True,
        )
        job.await_file("listening")
        job.go(BEGIN)
        sent, _ = forger.communicate(timeout=60)
        job.await_meeting(END)
        job.go(END)
        results = job.results(60)
    assert sum(json.loads(sent).values()) == count
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
