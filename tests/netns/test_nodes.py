# SPDX-License-Identifier: BSD-3-Clause
"""Several ranks on a host share memory, and one of them multicasts for all."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from exchange import FORMS, KINDS
from job import SETTINGS, Job, Rounds, briefly, over_mappings, summed_stats
from results import read

from bench.testbed.cluster import Cluster
from bench.testbed.launcher import Launcher

CHUNK_BYTES = 1456  # what a frame of 1514 bytes carries
BLOCK_BYTES = 512 << 10

# By name, the number of each rank's host.
MAPPINGS = {
    "block": [0, 0, 1, 1],
    "cyclic": [0, 1, 0, 1],
    "uneven": [1, 0, 1, 1, 2],
    "mixed": [0, 1, 1, 0, 2, 1, 2],
}
pytestmark = pytest.mark.timeout(120)


@over_mappings(MAPPINGS, brief=["cyclic", "uneven"])
def test_operations(
    cluster: Cluster, tmp_path: Path, launcher: Launcher, mapping: str
) -> None:
    """Results equal the MPI library's in MPI's order, wherever the ranks are.

    A host loses a tenth of the multicast datagrams.
    """
    places = MAPPINGS[mapping]
    cluster.shape(200, burst_bytes=4000)
    sizes = [1, 64, CHUNK_BYTES + 1, 20 * CHUNK_BYTES, 150_000]
    rounds = [{"sizes": sizes, "in_place": True, "kinds": KINDS, "forms": FORMS}]
    game = {
        "nranks": len(places),
        "nthreads": 1,
        "settings": SETTINGS,
        "rounds": rounds,
    }
    stats = Counter[str]()
    with (
        cluster.losing([1], 0.1, "multicast") as loss,
        Rounds(cluster, places, tmp_path, launcher=launcher, games=[game]) as job,
    ):
        for result in job.results(90).values():
            ((outcome,),) = result["games"]
            stats.update(outcome["stats"])
        assert loss.dropped()[0] > 0
    noperations = len(KINDS) * len(FORMS) * len(sizes)
    assert stats["node_operations"] == len(places) * noperations
    assert stats["rx_repaired_chunks"] > 0


@pytest.mark.parametrize("mapping", briefly(MAPPINGS, brief=["cyclic", "mixed"]))
def test_a_host_receives_once(cluster: Cluster, tmp_path: Path, mapping: str) -> None:
    """A host gets each block from elsewhere once, and what it has itself not at all.

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
        settings={"protect": "off"},
        mishaps=mishaps,
    ) as job:
        for op in (5, 10):
            job.await_meeting(op)
            readings.append(cluster.ports())
            job.go(op)
        results = job.results(60)
    before, after = readings
    nhosts = len(set(places))
    words = f"between {nhosts} nodes"
    assert all(words in result["explained"] for result in results.values())
    switch = {name: after[name] - before[name] for name in before}
    for host in set(places):
        elsewhere = len(places) - places.count(host)
        received = switch[f"to{host}"].sent_bytes / 5 / BLOCK_BYTES
        assert elsewhere <= received <= 1.06 * elsewhere, summed_stats(results)


def test_larger_than_slots(cluster: Cluster, tmp_path: Path) -> None:
    """Blocks that take many pieces arrive, with little shared memory."""
    cluster.shape(None)
    settings = {"node_bytes": "2M"}
    with Job(
        cluster,
        MAPPINGS["mixed"],
        tmp_path,
        sizes=[1_000_001, 1, 3_000_000],
        settings=settings,
    ) as job:
        results = job.results(60)
    assert results[0]["stats"]["node_pieces"] > 20


def test_many_communicators(cluster: Cluster, tmp_path: Path) -> None:
    """Threads use communicators of which some find no shared memory left."""
    settings = {"node_bytes": "1M"}
    with Job(
        cluster,
        MAPPINGS["cyclic"],
        tmp_path,
        sizes=[1, 100_000],
        repeat=3,
        ncomms=10,
        settings=settings,
    ) as job:
        job.results(60)


@pytest.mark.parametrize("node_bytes", [0, "64M"])
def test_one_rank_a_host(cluster: Cluster, tmp_path: Path, node_bytes: object) -> None:
    """Where each host has one rank, opening takes no message for nodes."""
    with Job(
        cluster, 2, tmp_path, sizes=[1000], settings={"node_bytes": node_bytes}
    ) as job:
        results = job.results(60)
    for result in results.values():
        assert result["stats"]["node_operations"] == 0
        # On settings, facts, devices, endpoints, connections, probes and the stream;
        # a slow host may need more probes.
        assert 7 <= result["stats"]["open_messages"] <= 10


# ---- ranks that die ----------------------------------------------------------

NRANKS = 4
OP = 5
TIMEOUT_S = 1.5


def die(
    cluster: Cluster, folder: Path, places: list[int], victim: int, **spec: object
) -> Job:
    """Return a job in which a rank dies long before its operations have ended."""
    return Job(
        cluster,
        places,
        folder,
        outlive=True,
        sizes=[BLOCK_BYTES],
        # In shared memory ten operations end before a rank can die.
        repeat=3000,
        mishaps=[{"what": "die", "rank": victim, "op": OP, "for_s": 0.01}],
        **spec,
    )


@pytest.mark.parametrize("victim", [0, 2])
def test_a_rank_dies_on_one_node(cluster: Cluster, tmp_path: Path, victim: int) -> None:
    """If a rank dies, the others name it, and those of a new communicator go on."""
    settings = {"transport": "shm", "timeout": TIMEOUT_S}
    places = [0] * NRANKS
    with die(
        cluster, tmp_path, places, victim, use_spare=True, settings=settings
    ) as job:
        results = job.results(30, without=[victim], failing=True)
    for result in results.values():
        (error, *_) = result["errors"]
        assert (error["kind"], error["ranks"]) == ("RankLeft", [victim])
        assert f"the process of rank {victim} has ended" in error["text"]
        assert error["seconds"] < TIMEOUT_S
        assert result["spare_worked"]


@pytest.mark.parametrize("victim", [0, 1, 3])
@pytest.mark.parametrize("mapping", briefly(["block", "cyclic"], brief=["cyclic"]))
def test_a_rank_dies_on_one_of_several_nodes(
    cluster: Cluster, tmp_path: Path, mapping: str, victim: int
) -> None:
    """If a node leader or another rank dies, all fail; those of its node name it."""
    places = MAPPINGS[mapping]
    with die(cluster, tmp_path, places, victim, settings={"timeout": TIMEOUT_S}) as job:
        others = [rank for rank in range(NRANKS) if rank != victim]
        for rank in others:
            job.await_file(f"{rank}.json", 20)
        results = read(tmp_path, others, failing=True)
    for rank, result in results.items():
        (error, *_) = result["errors"]
        assert error["kind"] == "RankLeft", error
        assert "has ended" in error["text"]
        assert error["seconds"] < TIMEOUT_S + 1
        (named,) = error["ranks"]
        assert places[named] == places[victim]
        if places[rank] == places[victim]:
            assert named == victim
        else:
            assert "or that of another rank of its node" in error["text"]
