# SPDX-License-Identifier: BSD-3-Clause
"""Several ranks on a host share memory, and one of them multicasts for all."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
import support
from exchange import FORMS, KINDS
from hosts import on_hosts
from ranks import CHUNK_BYTES, VARIABLES, job
from ranks import losing as lossy
from results import Results, read, total
from rounds import Outcome, game, losing, play

from bench.guest.guest import Guest

SHARING = support.ROOT / "tests/netns/sharing.py"
PLAY = support.ROOT / "tests/programs/play.py"

# Bytes of blocks around multiples of a chunk, and a large one.
EDGES = [
    1,
    CHUNK_BYTES - 1,
    CHUNK_BYTES,
    CHUNK_BYTES + 1,
    16 * CHUNK_BYTES - 1,
    100_000,
]

# By name, the number of each rank's host: 1 to 4 ranks on each of 2 to 4 hosts.
MAPPINGS = {
    "block": [0, 0, 1, 1],
    "cyclic": [0, 1, 2, 0, 1, 2],
    "uneven": [1, 0, 1, 1, 2],
    "mixed": [0, 1, 1, 0, 2, 1, 2],
    "three": [0, 0, 0, 1, 1, 1],
    "four": [0, 1] * 4,
    "hosts": [0, 0, 1, 1, 2, 2, 3, 3],
    "many": [0, 1, 2, 3] * 4,
}


# Settings that concern nodes or repairs.
SETTINGS: list[dict[str, Any]] = [
    {"repair": "nak"},
    {"repair": "neighbour"},
    {"chains": 1, "eager_bytes": 0},
    {"chains": "all", "subgroups": 2, "checksum": "full"},
    {"progress": "poll", "join": "attach"},
    {"progress": "event", "node_bytes": "2M"},
    {"progress_thread": "off"},
    {"zero_copy": True, "subgroups": 5, "receives": 64},
]


def params(*quick: str) -> list[Any]:
    """Return the names of all mappings; those that are not `quick` are long."""
    marks = {name: () if name in quick else pytest.mark.long for name in MAPPINGS}
    return [pytest.param(name, marks=mark) for name, mark in marks.items()]


def play_on(guest: Guest, mapping: str, *games: list[Any]) -> list[list[Outcome]]:
    """Play games, each of rounds and settings, on a mapping's hosts."""
    places = MAPPINGS[mapping]
    made = [game(len(places), rounds, **given) for rounds, given in games]
    outcomes = play(guest, made, places=places, limit_s=200)
    for outcome in (each for rounds in outcomes for each in rounds):
        assert outcome.total("node_operations") > 0, outcome
        assert outcome.total("unicast_epochs") == 0, outcome
        assert outcome.total("rx_corrupt_datagrams") == 0, outcome
    return outcomes


@pytest.mark.timeout(240, func_only=True)
@pytest.mark.parametrize("mapping", params("uneven"))
def test_operations(guest: Guest, mapping: str, *, long: bool) -> None:
    """Results equal the MPI library's in private and shared memory, also under loss.

    Only node leaders multicast, and each chunk that is lost on the way to one of them
    is fetched once.
    """
    sizes = [0, *EDGES] if long else EDGES[2:]
    every = {"sizes": sizes, "kinds": KINDS, "forms": FORMS, "in_place": True}
    shared = {**every, "place": "shared"}
    loss = losing([0, 1], "loss 10%")
    lossless = [every, shared] if long else []
    rounds = [*lossless, {**every, **loss}, {**shared, **loss}]
    (outcomes,) = play_on(guest, mapping, [rounds, {}])
    nops = len(KINDS) * len(FORMS) * len(sizes)
    nranks, nhosts = len(MAPPINGS[mapping]), len(set(MAPPINGS[mapping]))
    for outcome in outcomes:
        assert outcome.total("node_operations") == nranks * nops, outcome
        leaders = [each for each in outcome.ranks if each["tx_multicast_datagrams"]]
        assert len(leaders) == nhosts, outcome
        assert outcome.total("failed_reads") == 0, outcome
    for outcome in outcomes[-2:]:
        assert outcome.dropped > 0
        outcome.check()


@pytest.mark.parametrize(
    "mapping", ["block", pytest.param("uneven", marks=pytest.mark.long)]
)
def test_faults(guest: Guest, mapping: str, seed: int, *, long: bool) -> None:
    """Results are right under random faults of all kinds of datagrams."""
    base = {"sizes": EDGES, "kinds": KINDS, "in_place": True}
    rounds = [base, {**base, "place": "shared"}]
    faults = (
        f"loss=0.05,dup=0.02,reorder=0.05,kind=all,seed={seed}",
        f"loss=0.1,dup=0.02,reorder=0.05,seed={seed}",
        f"delay_us=300,reorder=0.1,kind=all,seed={seed};loss=0.3,rank=1,seed={seed}",
    )
    games = [[rounds, {"fault": each}] for each in faults]
    for outcomes in play_on(guest, mapping, *(games if long else games[:1])):
        for outcome in outcomes:
            assert outcome.total("rx_repaired_chunks") > 0, outcome


@pytest.mark.long
@pytest.mark.timeout(240, func_only=True)
@pytest.mark.parametrize("given", SETTINGS, ids=str)
def test_settings(guest: Guest, given: dict[str, Any]) -> None:
    """Results are right with settings that concern nodes or repairs."""
    base = {"sizes": [*EDGES[1:], 1_000_000], "in_place": True}
    loss = losing([0, 1], "loss 5%")
    rounds = [
        {**base, "place": "owned", **loss},
        {**base, "place": "shared", **loss},
        {"sizes": [100, 4000, 4100, 100_000], "place": "strided", **loss},
        {**base, "place": "shared", "late": {"1": 0.05}},
    ]
    play_on(guest, "uneven", [rounds, given])


@pytest.mark.long
def test_in_place(guest: Guest) -> None:
    """A host receives each block from elsewhere once, right into the shared array.

    Nothing passes through the segment if a host's blocks are one range. With ZERO_COPY
    the device itself puts chunks into the array.
    """
    nchunks, repeat = 200, 3
    rounds = [{"sizes": [nchunks * CHUNK_BYTES], "repeat": repeat, "place": "shared"}]
    zero_copy = {"zero_copy": True, "subgroups": 3, "receives": 64}
    outcomes = play_on(guest, "block", [rounds, {}], [rounds, zero_copy])
    for (outcome,) in outcomes:
        assert outcome.total("node_tx_bytes") == 0, outcome
        assert outcome.total("node_rx_bytes") == 0, outcome
        sent = outcome.total("tx_multicast_datagrams")
        assert sent == len(MAPPINGS["block"]) * nchunks * repeat, outcome
        assert outcome.total("rx_multicast_datagrams") <= sent, outcome
    ((copied,), (placed,)) = outcomes
    assert copied.total("zero_copy_chunks") == 0
    assert placed.total("zero_copy_chunks") > 0, placed


def share(guest: Guest, mapping: str, *, ndevices: int = 1, **spec: Any) -> Results:
    """Run ranks of sharing.py while a host's last device loses; return the results."""
    places = MAPPINGS[mapping]
    folder, command = job(
        guest,
        len(places),
        program=SHARING,
        wrap=on_hosts(places, ndevices),
        **spec,
    )
    with lossy(guest, 4 * ndevices - 3, "loss 5%"):
        status, said = guest.run_unchecked(command, limit_s=100, cwd=support.ROOT)
    results = read(folder, range(len(places)), why=f"{status}\n{said}")
    assert status == 0, said
    return results


@pytest.mark.parametrize("mapping", params())
def test_sharing(guest: Guest, mapping: str) -> None:
    """Results in shared arrays are right, and not torn while other ranks go on."""
    results = share(guest, mapping)
    assert total(results, "node_operations") > 0
    assert total(results, "rx_lost_chunks") > 0


@pytest.mark.parametrize("mapping", params("block"))
def test_rails(guest: Guest, mapping: str) -> None:
    """Results arrive right over two devices of each host, of which one loses some.

    Hosts that share one network can use both devices, too.
    """
    nrails = 2 if min(Counter(MAPPINGS[mapping]).values()) > 1 else 1
    results = share(guest, mapping, ndevices=2, settings={"rails": 2})
    assert total(results, "rx_lost_chunks") > 0 or nrails == 1
    for result in results.values():
        said = result["explained"]
        assert ("2 rails: RoCE multicast, rxe" in said) == (nrails == 2), said


@pytest.mark.long
@pytest.mark.parametrize("culprit", [0, 3])
def test_private_memory(guest: Guest, culprit: int) -> None:
    """If a rank passes private memory, the ranks of all hosts raise, and none waits."""
    results = share(guest, "block", culprit=culprit)
    errors = [result["error"] for result in results.values()]
    assert all(errors), errors
    assert any(f"private memory on rank {culprit}" in error for error in errors), errors


# In the mapping "block", ranks 0 and 2 are the leaders.
@pytest.mark.parametrize(
    "victim", [1, *(pytest.param(n, marks=pytest.mark.long) for n in (0, 2, 3))]
)
def test_a_rank_dies(guest: Guest, victim: int) -> None:
    """If any rank dies, all fail, and those of its node name it; the others go on.

    Those of the other node name its leader, and do not wait for the dead rank when they
    free communicators on which nothing has failed.
    """
    places, limit_s, timeout_s = MAPPINGS["block"], 60, 1.5
    folder, command = job(
        guest,
        len(places),
        wrap=on_hosts(places),
        outlive=True,
        sizes=[512 << 10],
        repeat=300,
        open_first=True,
        use_spare=True,
        settings={"timeout": timeout_s},
        mishaps=[{"what": "die", "rank": victim, "op": 5, "for_s": 0.02}],
    )
    status, said = guest.run_unchecked(
        command, limit_s=limit_s, cwd=support.ROOT, **VARIABLES
    )
    others = [rank for rank in range(len(places)) if rank != victim]
    for rank, result in read(folder, others, failing=True, why=said).items():
        error = result["errors"][0]
        assert error["seconds"] < timeout_s + 5
        assert result["spare_worked"]
        near = places[rank] == places[victim]
        leader = places.index(places[victim])
        assert error["ranks"] == [victim if near else leader]
        if near or victim != leader:
            assert "has ended" in error["text"], error
    assert status == 0, f"the ranks have not ended: {status}\n{said}"


@pytest.mark.long
@pytest.mark.timeout(240, func_only=True)
def test_programs(guest: Guest, seed: int) -> None:
    """Random programs on several hosts give the MPI library's results."""
    places, count = [0, 1, 0, 1], 12
    _, command = job(guest, len(places), wrap=on_hosts(places))
    command[-2:] = [PLAY, str(count), str(seed), "verbs"]
    said = guest.run(command, limit_s=200, cwd=support.ROOT)
    told = support.last_json(said)
    assert told["programs"] >= count
    assert told["proxied"] > 0
    assert told["epochs"] > count
    assert told["node_operations"] > 0
    assert told["rx_repaired_chunks"] > 0
