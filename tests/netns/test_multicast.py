# SPDX-License-Identifier: BSD-3-Clause
"""Networks where multicast reaches no rank, only some ranks, or all only at first."""

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

BLOCK_BYTES = 64 << 10
# Operations that take longer than this count as slow.
SLOW_S = 0.2
pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def forgetful(able: None) -> Iterator[Cluster]:  # noqa: ARG001 -- must come first
    """Yield hosts on a switch that may forget a group's members in a second or two.

    Under IGMP version 2, a host that hears another host's report does not send its own.
    """
    with Cluster(5, igmp_version=2) as cluster:
        cluster.shape(200)
        yield cluster


def paced(repeat: int, gap_s: float) -> list[dict[str, object]]:
    """Return mishaps that make rank 0 enter each operation `gap_s` late."""
    return [
        {"what": "late", "rank": 0, "op": op, "for_s": gap_s} for op in range(repeat)
    ]


def check_speed(results: Mapping[int, Mapping[str, Any]]) -> None:
    """Check that at most three operations were slow.

    Rank 0 enters last, so its times do not contain any wait for late ranks.
    """
    slow = [seconds for seconds in results[0]["seconds"] if seconds > SLOW_S]
    assert len(slow) <= 3, slow


def test_igmp_2(forgetful: Cluster, tmp_path: Path) -> None:
    """Operations stay fast under IGMP version 2 on a switch that snoops.

    It is a matter of chance whether the switch forgets a host.
    """
    with Job(
        forgetful, 4, tmp_path, sizes=[BLOCK_BYTES], repeat=60, mishaps=paced(60, 0.1)
    ) as job:
        check_speed(job.results(60))


@pytest.fixture
def many_interfaces(able: None) -> Iterator[Cluster]:  # noqa: ARG001 -- must come first
    """Yield hosts with three interfaces, of which only lan0 leads to the other hosts.

    The first, eth0, has the same address on all hosts; the last, nowhere0, has the
    default route and leads nowhere.
    """
    with Cluster(3) as cluster:
        for number, host in enumerate(cluster.hosts):
            ip = functools.partial(host.run, "ip")
            (address,) = json.loads(ip("-json", "address", "show", "eth0"))[0][
                "addr_info"
            ]
            ip("address", "flush", "dev", "eth0")
            # Bridges for virtual machines have such an address on every host.
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


def test_choice_of_interface(many_interfaces: Cluster, tmp_path: Path) -> None:
    """Of several interfaces, mpimcast uses the one that leads to the other hosts."""
    # Open MPI does not find the interface by itself.
    variables = {"OMPI_MCA_btl_tcp_if_include": "lan0"}
    with Job(
        many_interfaces, 3, tmp_path, sizes=[BLOCK_BYTES], repeat=5, variables=variables
    ) as job:
        results = job.results(60)
    for result in results.values():
        assert "UDP multicast over the network, lan0, " in result["explained"]


@pytest.mark.parametrize("transport", ["udp", "auto"])
@pytest.mark.parametrize("deaf", [[2], range(4)], ids=["one", "all"])
def test_no_multicast_at_opening(
    cluster: Cluster, tmp_path: Path, deaf: list[int], transport: str
) -> None:
    """If multicast does not reach some ranks, auto takes the MPI library; udp fails.

    In both cases the message names the ranks between which multicast does not arrive.
    """
    settings = {"transport": transport}
    with (
        cluster.losing(deaf),
        Job(
            cluster, 4, tmp_path, sizes=[BLOCK_BYTES], repeat=10, settings=settings
        ) as job,
    ):
        results = job.results(60, failing=transport == "udp")
    reasons = {
        result["explained"] if transport == "auto" else result["errors"][0]["text"]
        for result in results.values()
    }
    assert len(reasons) == 1, reasons
    assert re.search(r"multicast from rank \d does not reach rank \d", reasons.pop())
    assert transport == "udp" or results[0]["explained"].startswith("mpi: ")


@pytest.mark.parametrize(
    "after_s",
    [
        2,
        pytest.param(5, marks=pytest.mark.long),
        pytest.param(20, marks=pytest.mark.long),
    ],
)
def test_multicast_ends(cluster: Cluster, tmp_path: Path, after_s: int) -> None:
    """If multicast fails some seconds after the opening, operations go on by unicast.

    Few operations are slow.
    """
    repeat = 20 * after_s + 30
    mishaps = [{"what": "meet", "rank": 0, "op": 10}, *paced(repeat, 0.05)]
    with contextlib.ExitStack() as stack:
        job = stack.enter_context(
            Job(
                cluster,
                4,
                tmp_path,
                sizes=[BLOCK_BYTES],
                repeat=repeat,
                mishaps=mishaps,
            )
        )
        job.await_meeting(10)
        job.go(10)
        time.sleep(after_s - 1)
        stack.enter_context(cluster.losing(range(4)))
        results = job.results(60)
    check_speed(results)
    assert results[0]["stats"]["unicast_epochs"] > 0
