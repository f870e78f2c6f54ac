# SPDX-License-Identifier: BSD-3-Clause
"""Allgather over RDMA devices gives every rank the MPI library's bytes."""

from __future__ import annotations

import json
import math

import pytest
from ranks import CHUNK, gather
from rounds import game, play

from bench.guest.guest import Guest

EDGES = [1, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK, 16 * CHUNK - 1, 100_000]


def test_sizes(guest: Guest) -> None:
    """Empty, chunk-sized and large blocks arrive intact on 2 to 8 ranks."""
    several = {"sizes": [0, *EDGES], "repeat": 2, "in_place": True}
    large = {"sizes": [300_000, 1 << 20], "in_place": True}
    games = [
        game(8, [several, {"sizes": [300_000]}]),
        game(7, [several]),
        *(game(nranks, [several, large]) for nranks in (4, 3, 2)),
    ]
    for outcomes in play(guest, games):
        for outcome in outcomes:
            assert outcome.total("rx_foreign_datagrams") == 0
            assert outcome.total("rx_corrupt_datagrams") == 0


def test_settings(guest: Guest) -> None:
    """Bytes are right for SUBGROUPS, CHAINS, CHECKSUM, JOIN and PROGRESS alike."""
    rounds = [{"sizes": [*EDGES, 300_000]}]
    choices = [
        *(
            {"subgroups": subgroups, "chains": chains}
            for subgroups in (1, 4)
            for chains in ("1", "2", "all")
        ),
        *({"checksum": checksum} for checksum in ("off", "full")),
        *(
            {"join": join, "progress": progress}
            for join in ("cm", "attach")
            for progress in ("poll", "event")
        ),
    ]
    play(guest, [game(4, rounds, **settings) for settings in choices])


@pytest.mark.parametrize("join", ["cm", pytest.param("attach", marks=pytest.mark.long)])
def test_groups(guest: Guest, join: str) -> None:
    """Devices join the groups of GROUP alone, one for each subgroup."""
    groups = ["239.77.9.4", "239.77.9.5"]
    joined = guest.work / "joined"
    gather(
        guest,
        3,
        beside="until test -e reached1; do sleep 0.02; done\n"
        f"ip -json maddress show >{joined}; touch go1",
        sizes=[CHUNK],
        repeat=2,
        settings={"group": "-".join(groups), "subgroups": 2, "join": join},
        mishaps=[{"what": "meet", "rank": 0, "op": 1}],
    )
    found: dict[str, set[str]] = {}
    for device in json.loads(joined.read_text()):
        addresses = {each.get("address", "") for each in device["maddr"]}
        found[device["ifname"]] = {each for each in addresses if each[:4] == "239."}
    assert {name: each for name, each in found.items() if each} == {
        f"net{rank}": set(groups) for rank in range(3)
    }


def test_requests(guest: Guest) -> None:
    """Requests complete, whether the responder or their own Test calls move them."""
    rounds = [{"sizes": [0, CHUNK + 1, 100_000], "apart": True}]
    play(
        guest,
        [
            game(nranks, rounds, progress_thread=choice)
            for choice in ("on", "off")
            for nranks in (2, 4)
        ],
    )


def test_many(guest: Guest) -> None:
    """A thousand operations in a row, and three communicators at once, are right."""
    thousand = {"sizes": [256, 5000], "repeat": 500}
    together = {"sizes": EDGES, "repeat": 2}
    for outcomes in play(guest, [game(3, [thousand]), game(4, [together], nthreads=3)]):
        assert outcomes[0].total("rx_foreign_datagrams") == 0


def test_control(guest: Guest, *, long: bool) -> None:
    """Without loss ranks send few control messages and read nothing."""
    ten = {"sizes": [3 * CHUNK], "repeat": 10, "bare": True}
    several = (2, 4, 8) if long else (2, 4)
    for outcomes in play(guest, [game(nranks, [ten] * 8) for nranks in several]):
        nranks = len(outcomes[0].ranks)
        # A rank that gets no processor for long is asked for its record, which
        # happens in most rounds of eight ranks on one processor.
        fewest = min(
            max(stats["tx_control_datagrams"] for stats in outcome.ranks)
            for outcome in outcomes
        )
        crowded = 10 if nranks > 4 else 0
        assert fewest <= 10 * (math.ceil(math.log2(nranks)) + 1) + crowded
        assert sum(outcome.total("unicast_epochs") for outcome in outcomes) == 0
        quiet = [outcome for outcome in outcomes if not outcome.total("rx_lost_chunks")]
        for counter in ("reads", "map_reads", "read_chunks", "registrations"):
            assert sum(outcome.total(counter) for outcome in quiet) == 0
        assert len(quiet) > len(outcomes) // 2
