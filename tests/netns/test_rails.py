# SPDX-License-Identifier: BSD-3-Clause
"""Hosts with two network devices spread the data over both, by a leader for each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from exchange import FORMS, KINDS
from job import (
    SETTINGS,
    Job,
    Rounds,
    Sharing,
    briefly,
    over_mappings,
    summed_stats,
)
from results import read

from bench.testbed.cluster import Cluster
from bench.testbed.launcher import Launcher

CHUNK_BYTES = 1456  # what a frame of 1514 bytes carries
BLOCK_BYTES = 512 << 10
NHOSTS = 4
LINKS = ("", ".eth1")

# By name, the number of each rank's host.
MAPPINGS = {
    "block": [0, 0, 1, 1],
    "cyclic": [0, 1, 2, 0, 1, 2],
    "four": [0, 0, 0, 0, 1, 1, 1, 1],
    "mixed": [1, 0, 1, 1, 2, 0, 2],
}
RAILS = {"rails": 2}
# Bytes on links are compared with those of blocks, so datagrams have no tags.
COUNTED = {**RAILS, "protect": "off"}
pytestmark = pytest.mark.timeout(120)


@pytest.fixture(scope="module")
def wired(able: None) -> Iterator[Cluster]:  # noqa: ARG001 -- must come first
    """Yield hosts that have two links each, to two switches."""
    with Cluster(NHOSTS, nlinks=2) as cluster:
        yield cluster


@pytest.fixture
def cluster(wired: Cluster) -> Cluster:
    """Reset the links to 200 Mbit/s, and return the cluster."""
    wired.shape(200)
    return wired


@over_mappings(MAPPINGS, brief=["cyclic"])
def test_operations(
    cluster: Cluster, tmp_path: Path, launcher: Launcher, mapping: str
) -> None:
    """Results equal the MPI library's in MPI's order, though one link loses a tenth."""
    places = MAPPINGS[mapping]
    cluster.shape(200, burst_bytes=4000)
    sizes = [1, 64, CHUNK_BYTES + 1, 20 * CHUNK_BYTES, 150_000]
    rounds = [{"sizes": sizes, "in_place": True, "kinds": KINDS, "forms": FORMS}]
    settings = {**SETTINGS, **RAILS}
    game = {"nranks": len(places), "nthreads": 1}
    game |= {"settings": settings, "rounds": rounds}
    stats = Counter[str]()
    with (
        cluster.losing([1], 0.1, "multicast", link=1) as loss,
        Rounds(cluster, places, tmp_path, launcher=launcher, games=[game]) as job,
    ):
        for result in job.results(90).values():
            ((outcome,),) = result["games"]
            stats.update(outcome["stats"])
        assert loss.dropped()[0] > 0
    noperations = len(KINDS) * len(FORMS) * len(sizes)
    assert stats["node_operations"] == len(places) * noperations
    assert stats["rx_repaired_chunks"] > 0


@pytest.mark.parametrize(
    "mapping", briefly(["block", "cyclic", "four"], brief=["block", "cyclic"])
)
def test_shared_results(cluster: Cluster, tmp_path: Path, mapping: str) -> None:
    """Results arrive in arrays that ranks share over both links, of which one loses."""
    cluster.shape(500, burst_bytes=4000)
    with (
        cluster.losing([1], 0.05, "multicast", link=1),
        Sharing(cluster, MAPPINGS[mapping], tmp_path, settings=RAILS) as job,
    ):
        stats = summed_stats(job.results(90))
    assert stats["rx_lost_chunks"] > 0
    if mapping != "cyclic":
        # Where each host's blocks are one range, nothing passes through the segment.
        assert stats["node_tx_bytes"] == stats["node_rx_bytes"] == 0


@pytest.mark.parametrize("mapping", briefly(MAPPINGS, brief=["block", "mixed"]))
def test_each_link_carries_half(cluster: Cluster, tmp_path: Path, mapping: str) -> None:
    """A host gets each block from elsewhere once, half of it over each link.

    The ports are read before operations 5 and 10.
    """
    places = MAPPINGS[mapping]
    mishaps = [{"what": "meet", "rank": 0, "op": op} for op in (5, 10)]
    readings = []
    with Job(
        cluster,
        places,
        tmp_path,
        sizes=[BLOCK_BYTES],
        repeat=11,
        mishaps=mishaps,
        settings=COUNTED,
    ) as job:
        for op in (5, 10):
            job.await_meeting(op)
            readings.append(cluster.ports())
            job.go(op)
        results = job.results(60)
    before, after = readings
    sent = {name: (after[name] - before[name]).sent_bytes for name in before}
    for result in results.values():
        assert result["explained"].startswith("udp: 2 rails: UDP"), result
        assert "eth0" in result["explained"]
        assert "eth1" in result["explained"]
    for host in set(places):
        elsewhere = len(places) - places.count(host)
        first, second = (sent[f"to{host}{link}"] / 5 / BLOCK_BYTES for link in LINKS)
        assert elsewhere <= first + second <= 1.06 * elsewhere, summed_stats(results)
        assert first == pytest.approx(second, 0.1)


def test_shared_results_take_both_links(cluster: Cluster, tmp_path: Path) -> None:
    """The second link carries half of a result that arrives in place.

    The MPI library's own results, with which they are compared, take the first.
    """
    places, repeat = MAPPINGS["block"], 8
    rounds = [{"sizes": [BLOCK_BYTES], "repeat": repeat, "place": "shared"}]
    game = {"nranks": len(places), "nthreads": 1, "rounds": rounds}
    game["settings"] = {**SETTINGS, **COUNTED}
    with Rounds(cluster, places, tmp_path, games=[game]) as job:
        job.results(60)
        port = cluster.ports()["to0.eth1"]
    elsewhere = len(places) - places.count(0)
    half = repeat * elsewhere * BLOCK_BYTES / 2
    assert half <= port.sent_bytes <= 1.06 * half


def test_little_memory(cluster: Cluster, tmp_path: Path) -> None:
    """Threads use communicators whose blocks take many pieces in short slots."""
    cluster.shape(None)
    settings = {**RAILS, "node_bytes": "2M"}
    with Job(
        cluster,
        MAPPINGS["four"],
        tmp_path,
        sizes=[1_000_001, 1, 300_000],
        ncomms=3,
        settings=settings,
    ) as job:
        results = job.results(90)
    assert results[0]["stats"]["node_pieces"] > 20


def explained(
    cluster: Cluster, folder: Path, places: list[int], **settings: object
) -> str:
    """Return what rank 0 says of a job's path, once its results are right."""
    with Job(cluster, places, folder, sizes=[70_000], settings=settings) as job:
        return str(job.results(60)[0]["explained"])


def test_devices_in_the_given_order(cluster: Cluster, tmp_path: Path) -> None:
    """The rails are the devices of NET_DEVICES that are up, in its order.

    Both may have the same multicast group.
    """
    settings = {"group": "239.1.2.3", "ports": "30000-30999"}
    settings["net_devices"] = "eth1,none,eth0"
    said = explained(cluster, tmp_path, MAPPINGS["block"], **RAILS, **settings)
    assert said.index("eth1") < said.index("eth0")


def test_a_host_with_one_rank(cluster: Cluster, tmp_path: Path) -> None:
    """All hosts have as many rails as the host with the fewest ranks has ranks."""
    said = explained(cluster, tmp_path, [0, 1, 1, 0, 2], **RAILS)
    assert "2 rails" not in said
    assert said.endswith(
        "RAILS=2 needs as many ranks on each node, and rank 4 is alone on its node"
    )


def test_a_host_with_one_device(cluster: Cluster, tmp_path: Path) -> None:
    """All hosts have as many rails as the host with the fewest devices has devices."""
    cluster.hosts[1].run("ip", "link", "set", "eth1", "down")
    try:
        said = explained(cluster, tmp_path, MAPPINGS["block"], **RAILS)
    finally:
        cluster.hosts[1].run("ip", "link", "set", "eth1", "up")
    assert said.endswith(
        "RAILS=2 needs as many network devices on each node, and rank 2 has only eth0"
    )


def test_a_network_without_multicast(cluster: Cluster, tmp_path: Path) -> None:
    """If multicast does not arrive on one rail, it is said on which."""
    settings = {"transport": "udp,mpi"}
    with cluster.losing([1], 1.0, "multicast", link=1):
        said = explained(cluster, tmp_path, MAPPINGS["block"], **RAILS, **settings)
    assert said.startswith("mpi: multicast cannot be opened: rail 2 of 2: multicast")


def test_one_rank_a_host(cluster: Cluster, tmp_path: Path) -> None:
    """Where each host has one rank, RAILS changes nothing, and it is said so."""
    said = explained(cluster, tmp_path, [0, 1, 2], **RAILS)
    assert said.startswith("udp: UDP multicast over the network, eth0, chunks of")
    assert said.endswith("; RAILS=2 counts only where ranks of a node share memory")


TIMEOUT_S = 1.5


@pytest.mark.parametrize("victim", briefly(range(6), brief=[0, 4, 5]))
def test_a_rank_dies(cluster: Cluster, tmp_path: Path, victim: int) -> None:
    """If a leader of any rail dies, or another rank, all ranks fail in time.

    Those of its host name it, the others a leader of its host.
    """
    places = [0, 0, 0, 1, 1, 1]
    with Job(
        cluster,
        places,
        tmp_path,
        outlive=True,
        sizes=[BLOCK_BYTES],
        repeat=3000,
        mishaps=[{"what": "die", "rank": victim, "op": 5, "for_s": 0.01}],
        settings={**RAILS, "timeout": TIMEOUT_S},
    ) as job:
        others = [rank for rank in range(len(places)) if rank != victim]
        for rank in others:
            job.await_file(f"{rank}.json", 20)
        results = read(tmp_path, others, failing=True)
    for rank, result in results.items():
        (error, *_) = result["errors"]
        assert error["kind"] == "RankLeft", error
        assert error["seconds"] < TIMEOUT_S + 1
        (named,) = error["ranks"]
        assert places[named] == places[victim]
        if places[rank] == places[victim]:
            assert named == victim
