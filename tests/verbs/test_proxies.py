# SPDX-License-Identifier: BSD-3-Clause
"""PROGRESS=proxy over RDMA devices: all ranks have a proxy, or some do.

The first rank starts the proxy, which owns the queue pairs of all ranks that have one.
"""

from __future__ import annotations

from typing import Any

import pytest
from exchange import FORMS, KINDS
from ranks import CHUNK_BYTES, gather
from rounds import game, losing, play

from bench.guest.guest import Guest

NRANKS = 4
SIZES = [1, CHUNK_BYTES + 1, 100_000]
EVERY = {"sizes": SIZES, "kinds": KINDS, "forms": FORMS, "in_place": True}
NOPS = len(KINDS) * len(FORMS)
LOSS = losing([1, 2], "loss 10%")

# By name, the ranks that have a proxy.
WHO = {"all": range(NRANKS), "odd": range(1, NRANKS, 2)}

SETTINGS: list[dict[str, Any]] = [
    {"join": "attach", "checksum": "full"},
    {"repair": "nak"},
    {"repair": "neighbour", "chains": "all"},
    {"subgroups": 2, "chains": 2, "eager_bytes": 0},
]


def test_operations(guest: Guest, *, long: bool) -> None:
    """Results equal the MPI library's, and each lost chunk is fetched once.

    They do in private memory, and in memory that a proxy receives into.
    """
    private, owned = {**EVERY, **LOSS}, {**EVERY, **LOSS, "place": "owned"}
    both = [private, owned]
    games = [
        game(NRANKS, both if long else [private], proxied=WHO["odd"]),
        game(NRANKS, both if long else [owned], proxied=WHO["all"]),
    ]
    for outcomes in play(guest, games):
        for outcome in outcomes:
            assert outcome.total("epochs") == NRANKS * len(SIZES) * NOPS
            assert outcome.dropped > 0
            outcome.check()
            assert outcome.total("read_chunks") > 0, outcome
            assert outcome.total("failed_reads") == 0, outcome
            assert outcome.total("unicast_epochs") == 0, outcome
            assert outcome.total("rx_corrupt_datagrams") == 0, outcome


@pytest.mark.long
@pytest.mark.parametrize("given", SETTINGS, ids=str)
@pytest.mark.parametrize("who", WHO)
def test_settings(guest: Guest, who: str, given: dict[str, Any]) -> None:
    """Results are right under other settings, with losses."""
    rounds = [{**EVERY, **LOSS}, {**EVERY, **LOSS, "place": "owned"}]
    (outcomes,) = play(guest, [game(NRANKS, rounds, proxied=WHO[who], **given)])
    for outcome in outcomes:
        assert outcome.total("rx_repaired_chunks") > 0, outcome
        reads = outcome.total("read_chunks")
        assert (reads > 0) == ("repair" not in given), outcome


@pytest.mark.long
def test_zero_copy(guest: Guest) -> None:
    """A device puts chunks into memory of mpimcast.empty also for a proxy."""
    rounds = [{"sizes": [300 * CHUNK_BYTES], "repeat": 3, "place": "owned"}]
    given = {"zero_copy": True, "subgroups": NRANKS + 1, "receives": 64}
    ((outcome,),) = play(guest, [game(NRANKS, rounds, proxied=WHO["odd"], **given)])
    assert all(stats["zero_copy_chunks"] > 0 for stats in outcome.ranks), outcome


@pytest.mark.long
@pytest.mark.parametrize("who", WHO)
def test_protection(guest: Guest, who: str) -> None:
    """A proxy protects datagrams, and then lets nobody read its ranks' memory."""
    given = {"protect": "encrypt", "fault": "loss=0.05,kind=multicast"}
    ((outcome,),) = play(guest, [game(NRANKS, [EVERY], proxied=WHO[who], **given)])
    assert outcome.total("rx_lost_chunks") > 0
    assert outcome.total("read_chunks") == 0
    assert outcome.total("rx_forged_datagrams") == 0


@pytest.mark.long
def test_several_ranks_a_host(guest: Guest) -> None:
    """Where ranks share a host, its leader alone has the proxy multicast."""
    places = [1, 0, 1, 1, 2]
    rounds = [{**EVERY, **LOSS}, {**EVERY, **LOSS, "place": "shared"}]
    # The ranks of host 0 and of host 1.
    games = [game(len(places), rounds, proxied=range(4))]
    for outcome in play(guest, games, places=places)[0]:
        assert outcome.total("node_operations") == len(places) * len(SIZES) * NOPS
        assert outcome.dropped > 0
        outcome.check()


@pytest.mark.long
@pytest.mark.parametrize("who", WHO)
def test_a_proxy_that_is_killed(guest: Guest, who: str) -> None:
    """All ranks fail within TIMEOUT, and go on with another proxy."""
    timeout_s = 1.5
    results = gather(
        guest,
        NRANKS,
        failing=True,
        proxied=list(WHO[who]),
        beside="""
            until test -e reached5; do sleep 0.02; done
            pkill -KILL -f '[m]pimcast proxy' && touch go5""",
        sizes=[512 << 10],
        repeat=10,
        open_first=True,
        use_another=True,
        settings={"timeout": timeout_s},
        mishaps=[{"what": "meet", "rank": 0, "op": 5}],
    )
    for rank, result in results.items():
        error = result["errors"][0]
        assert error["seconds"] < timeout_s + 5, error
        assert result["another_worked"]
        is_told = "has ended or does not answer" in error["text"]
        assert is_told == (rank in WHO[who]), error
