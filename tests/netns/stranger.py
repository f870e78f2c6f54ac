# SPDX-License-Identifier: BSD-3-Clause
"""A host that has no part in a job, and that sends datagrams to the job's group."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from job import Job

from bench.testbed.cluster import Cluster
from bench.testbed.host import Host

_SENDING_LIMIT_S = 120


def meetings(*ops: int) -> list[dict[str, Any]]:
    """Return mishaps that have rank 0 wait for the test at operations."""
    return [{"what": "meet", "rank": 0, "op": op} for op in ops]


def send_between(
    job: Job, cluster: Cluster, program: str, begin: int, end: int, *arguments: object
) -> dict[str, Any]:
    """Have the cluster's last host send datagrams between two of a job's meetings.

    Parameters
    ----------
    program
        The name of a program in this folder. It is told the job's folder, group and
        port and, behind these, `arguments`. It makes the file `listening` when it has
        joined the group.
    begin, end
        The operations at which the job meets this test.

    Returns
    -------
    dict
        What the program has printed as JSON.
    """
    job.await_meeting(begin)
    group, port = group_of(cluster.hosts[0])
    words = [job.folder, group, port, *arguments]
    path = Path(__file__).with_name(program)
    stranger = subprocess.Popen(
        [*cluster.hosts[-1].enter(), sys.executable, path, *map(str, words)],
        stdout=subprocess.PIPE,
        text=True,
    )
    job.await_file("listening")
    job.go(begin)
    said, _ = stranger.communicate(timeout=_SENDING_LIMIT_S)
    job.await_meeting(end)
    job.go(end)
    sent: dict[str, Any] = json.loads(said)
    return sent


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
