# SPDX-License-Identifier: BSD-3-Clause
"""The doctor's findings on a healthy network, and on networks with one sick node."""

from __future__ import annotations

import functools
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from job import OPENMPI

from bench.testbed.cluster import BURST_BYTES, SINGLE_BURST_BYTES, Cluster
from bench.testbed.program import Program

NRANKS = 4
SICK = 2  # the faulty host
LIMIT_S = 30

pytestmark = pytest.mark.timeout(120)

# An nft expression for the frames that the sick host sends: they enter a switch through
# the port that leads to that host.
FROM_SICK = f"iifname to{SICK}"


@pytest.fixture
def examine(cluster: Cluster, tmp_path: Path) -> Iterator[Any]:
    """Yield a function that runs the doctor; see `_examine`."""
    yield functools.partial(_examine, cluster, tmp_path)
    for host in cluster.hosts:
        host.end_processes()


def _examine(
    cluster: Cluster, folder: Path, *checks: str, nranks: int = NRANKS, **variables: str
) -> tuple[int, str, dict[str, Any]]:
    """Run the doctor; return its exit status, its output and its JSON report.

    Parameters
    ----------
    *checks
        The checks to run; none means all.
    nranks
        The number of ranks, which run on the first hosts.
    **variables
        Variables of the ranks' environment.
    """
    report = folder / "report.json"
    program = ["-m", "mpimcast", "doctor", *checks]
    arguments = [*program, "--limit", str(LIMIT_S), "--json", report]
    command = OPENMPI.command(
        cluster, range(nranks), Program(arguments, folder, variables)
    )
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        # Separately, since launchers write exit statuses to the standard error.
        capture_output=True,
        text=True,
        timeout=2 * LIMIT_S,
        check=False,
    )
    assert report.exists(), done.stdout + done.stderr
    return done.returncode, done.stdout, json.loads(report.read_text())


def check_sick(
    result: tuple[int, str, dict[str, Any]], status: int, check: str, words: str
) -> dict[str, Any]:
    """Check that the findings name the sick host alone, and exclude it.

    Parameters
    ----------
    result
        The values that `examine` returned.
    status
        The exit status expected.
    check
        The check that must have found something.
    words
        Text that one of the findings must contain.

    Returns
    -------
    dict
        The JSON report.
    """
    code, said, document = result
    name = f"host{SICK}"
    assert code == status, said
    assert document["exclude"] == [name], said
    assert said.rstrip().splitlines()[-1] == f"sbatch -x {name} ..."
    serious = [each for each in document["findings"] if each["severity"] != "note"]
    assert {each["node"] for each in serious} == {name}, said
    assert check in {each["check"] for each in serious}, said
    assert any(words in each["what"] and each["mend"] for each in serious), said
    return document


def test_healthy(examine: Any) -> None:
    """A healthy network is usable, and the report covers every pair of ranks."""
    code, said, document = examine()
    assert code == 0, said
    assert document["verdict"] == "usable"
    assert document["exclude"] == []
    assert [node["name"] for node in document["nodes"]] == [
        f"host{number}" for number in range(NRANKS)
    ]
    heard = document["multicast"]
    sent = heard["sent"]
    for length in ("short", "full"):
        for rank, row in enumerate(heard[f"{length}_heard"]):
            assert row == [None if r == rank else sent for r in range(NRANKS)], said
    assert document["control"]["pairs"] == NRANKS * (NRANKS - 1)
    assert document["mtu"]["largest_bytes"] == dict.fromkeys(
        (f"host{number}" for number in range(NRANKS)), 1456
    )


def test_hears_nothing(cluster: Cluster, examine: Any) -> None:
    """A node that no multicast reaches is named; a job would use the MPI library."""
    with cluster.losing([SICK]):
        result = examine()
    document = check_sick(
        result, 3, "multicast", "it receives none of the multicast from others"
    )
    assert document["degraded_to"] == "the MPI library's own collectives"
    assert document["multicast"]["verified"]
    row = document["multicast"]["short_heard"][SICK]
    assert row == [None if rank == SICK else 0 for rank in range(NRANKS)]


@pytest.mark.long
def test_is_heard_by_nobody(cluster: Cluster, examine: Any) -> None:
    """A node whose multicast reaches no other node is named.

    The exit status is 4, since a job with TRANSPORT=udp would fail.
    """
    others = [number for number in range(NRANKS) if number != SICK]
    multicast = f"{FROM_SICK} ip daddr 224.0.0.0/4 ip protocol udp"
    with cluster.losing(others, traffic=multicast):
        result = examine(MPIMCAST_TRANSPORT="udp")
    check_sick(result, 4, "multicast", "others receive none of its multicast")


def test_small_mtu(cluster: Cluster, examine: Any) -> None:
    """A node with a smaller MTU than all others is named, with a command to fix it."""
    host = cluster.hosts[SICK]
    host.run("ip", "link", "set", "dev", "eth0", "mtu", "1000")
    try:
        result = examine()
    finally:
        host.run("ip", "link", "set", "dev", "eth0", "mtu", "1500")
    document = check_sick(result, 3, "nodes", "MTU of eth0 is 1000 bytes")
    mends = [each["mend"] for each in document["findings"]]
    assert any("ip link set dev eth0 mtu 1500" in mend for mend in mends)


@pytest.mark.long
def test_narrow_path(cluster: Cluster, examine: Any) -> None:
    """A node whose switch port drops full datagrams is named, with the passing size.

    The port drops datagrams longer than 1400 bytes, IP header included. The headers of
    IP, UDP and mpimcast take 44 of these bytes, which leaves 1356 for a chunk.
    """
    cluster.shape(200, burst_bytes=SINGLE_BURST_BYTES)
    with cluster.losing([SICK], traffic="ip protocol udp ip length > 1400"):
        result = examine()
    document = check_sick(result, 3, "mtu", "those of 1356 do")
    assert document["mtu"]["largest_bytes"][f"host{SICK}"] == 1356


def test_loss(cluster: Cluster, examine: Any) -> None:
    """A node whose switch port loses one datagram in five is named."""
    cluster.shape(200, burst_bytes=SINGLE_BURST_BYTES)
    with cluster.losing([SICK], 0.2, "udp"):
        result = examine()
    check_sick(result, 3, "multicast", "% of the multicast from others")


@pytest.mark.long
def test_no_unicast(cluster: Cluster, examine: Any) -> None:
    """A node that no unicast reaches is named, and a job would fail (status 4)."""
    with cluster.losing([SICK], traffic="unicast"):
        result = examine()
    check_sick(result, 4, "control", "it receives none of the unicast from others")


def test_slow_link(cluster: Cluster, examine: Any) -> None:
    """A node whose link has a tenth of the others' rate, both ways, is named."""
    slow = ("root", "tbf", "rate", "20mbit", "burst", str(BURST_BYTES))
    ends = [(cluster.hosts[SICK], "eth0"), (cluster.switch_of(SICK), f"to{SICK}")]
    for host, device in ends:
        host.run("tc", "qdisc", "replace", "dev", device, *slow, "limit", "1000000")
    check_sick(examine(), 3, "bandwidth", "it sends at")


@pytest.mark.long
def test_no_node_is_healthy(cluster: Cluster, examine: Any) -> None:
    """If multicast reaches no node, none is excluded."""
    with cluster.losing(range(NRANKS)):
        code, said, document = examine()
    assert code == 3, said
    assert document["exclude"] == []
    assert document["degraded_to"] == "the MPI library's own collectives"
    assert "most nodes do not hear each other" in document["findings"][0]["what"]
