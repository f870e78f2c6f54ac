# SPDX-License-Identifier: BSD-3-Clause
"""Networks on which multicast reaches no rank, not all ranks, or not for long."""

from __future__ import annotations

import contextlib
import functools
import json
import re
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from job import Job

from bench.testbed.cluster import Cluster

BLOCK = 64 << 10
SLOW_S = 0.2
pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def careless(able: None) -> Iterator[Cluster]:  # noqa: ARG001 -- comes first
    """Return hosts on a switch that forgets some of them after a second or two."""
    with Cluster(5, igmp_version=2) as cluster:
        cluster.shape(200)
        yield cluster


def paced(repeat: int, gap_s: float) -> list[dict[str, object]]:
    """Return mishaps that make rank 0 wait before each operation."""
    return [
        {"what": "late", "rank": 0, "op": op, "for_s": gap_s} for op in range(repeat)
    ]


def check_speed(results: Mapping[int, Mapping[str, Any]]) -> None:
    """Check that at most three operations were slow for rank 0, which enters last."""
    slow = [seconds for seconds in results[0]["seconds"] if seconds > SLOW_S]
    assert len(slow) <= 3, slow


def test_reports_suppressed(careless: Cluster, tmp_path: Path) -> None:
    """Operations stay fast under IGMP version 2 on a switch that snoops."""
    with Job(
        careless, 4, tmp_path, sizes=[BLOCK], repeat=60, mishaps=paced(60, 0.1)
    ) as job:
        # Whether the switch forgets a host is a matter of chance.
        check_speed(job.results(60))


@pytest.fixture
def two_faced(able: None) -> Iterator[Cluster]:  # noqa: ARG001 -- comes first
    """Return hosts whose first and last interfaces do not lead to the others."""
    with Cluster(3) as cluster:
        for number, host in enumerate(cluster.hosts):
            ip = functools.partial(host.run, "ip")
            (address,) = json.loads(ip("-json", "address", "show", "eth0"))[0][
                "addr_info"
            ]
            ip("address", "flush", "dev", "eth0")
            # All hosts share this address, as with the bridges of virtual machines.
            ip("address", "add", "192.168.122.1/24", "dev", "eth0")
            ip("link", "add", "lan0", "link", "eth0", "type", "macvlan")
            ip("link", "set", "lan0", "up")
            ip("address", "add", f"{address['local']}/24", "dev", "lan0")
            ip("link", "add", "nowhere0", "type", "veth", "peer", "nowhere1")
            ip("link", "set", "nowhere0", "up")
            ip("link", "set", "nowhere1", "up")
            ip("address", "add", f"10.66.{number}.1/24", "dev", "nowhere0")
            ip("route", "add", "default", "dev", "nowhere0")
        yield cluster


def test_interface(two_faced: Cluster, tmp_path: Path) -> None:
    """Of several interfaces the library takes the one that leads to the other hosts."""
    # Open MPI does not find the interface by itself.
    variables = {"OMPI_MCA_btl_tcp_if_include": "lan0"}
    with Job(
        two_faced, 3, tmp_path, sizes=[BLOCK], repeat=5, variables=variables
    ) as job:
        results = job.results(60)
    for result in results.values():
        assert "UDP multicast over the network, lan0, " in result["explained"]


@pytest.mark.parametrize("transport", ["udp", "auto"])
@pytest.mark.parametrize("numbers", [[2], range(4)], ids=["one", "all"])
def test_never(
    cluster: Cluster, tmp_path: Path, numbers: list[int], transport: str
) -> None:
    """Where multicast never arrives, auto takes the MPI library; udp says why not."""
    settings = {"transport": transport}
    with (
        cluster.losing(numbers),
        Job(cluster, 4, tmp_path, sizes=[BLOCK], repeat=10, settings=settings) as job,
    ):
        results = job.results(60, failing=transport == "udp")
    said = {
        result["explained"] if transport == "auto" else result["errors"][0]["text"]
        for result in results.values()
    }
    assert len(said) == 1, said
    assert re.search(r"multicast from rank \d does not reach rank \d", said.pop())
    assert transport == "udp" or results[0]["explained"].startswith("mpi: ")


@pytest.mark.parametrize(
    "after_s",
    [
        2,
        pytest.param(5, marks=pytest.mark.long),
        pytest.param(20, marks=pytest.mark.long),
    ],
)
def test_dies(cluster: Cluster, tmp_path: Path, after_s: int) -> None:
    """Operations go on, and few are slow, when multicast dies after the opening."""
    repeat = 20 * after_s + 30
    mishaps = [{"what": "meet", "rank": 0, "op": 10}, *paced(repeat, 0.05)]
    with contextlib.ExitStack() as stack:
        job = stack.enter_context(
            Job(cluster, 4, tmp_path, sizes=[BLOCK], repeat=repeat, mishaps=mishaps)
        )
        job.await_meeting(10)
        job.go(10)
        time.sleep(after_s - 1)
        stack.enter_context(cluster.losing(range(4)))
        results = job.results(60)
    check_speed(results)
    assert results[0]["stats"]["unicast_epochs"] > 0
