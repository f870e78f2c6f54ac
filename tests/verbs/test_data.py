# SPDX-License-Identifier: BSD-3-Clause
"""An Allgather over RDMA devices gives every rank the same bytes as MPI's own."""

from __future__ import annotations

import json
import math

import pytest
from ranks import CHUNK_BYTES, gather
from rounds import game, play

from bench.guest.guest import Guest

# Bytes of blocks around multiples of a chunk, and a large one.
EDGES = [
    1,
    CHUNK_BYTES - 1,
    CHUNK_BYTES,
    CHUNK_BYTES + 1,
    2 * CHUNK_BYTES,
    16 * CHUNK_BYTES - 1,
    100_000,
]


def test_sizes(guest: Guest, *, long: bool) -> None:
    """Empty, chunk-sized and large blocks arrive on 2 and 7 ranks, or on 2 to 8."""
    several = {"sizes": [0, *EDGES], "repeat": 2, "in_place": True}
    large = {"sizes": [300_000, 1 << 20], "in_place": True}
    games = [
        game(7, [several]),
        game(2, [several, large]),
    ]
    if long:
        games.append(game(8, [several, {"sizes": [300_000]}]))
        games += [game(nranks, [several, large]) for nranks in (4, 3)]
    for outcomes in play(guest, games):
        for outcome in outcomes:
            assert outcome.total("rx_foreign_datagrams") == 0
            assert outcome.total("rx_corrupt_datagrams") == 0


def test_settings(guest: Guest, *, long: bool) -> None:
    """Bytes are right for all values of SUBGROUPS, CHAINS, CHECKSUM, JOIN, PROGRESS."""
    rounds = [{"sizes": [*EDGES, 300_000]}]
    choices: list[dict[str, object]] = [
        {"subgroups": 4, "chains": "2", "checksum": "full", "join": "attach"},
        {"chains": "all", "checksum": "off", "progress": "poll"},
    ]
    every = [
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
    choices += every if long else []
    play(guest, [game(4, rounds, **settings) for settings in choices])


def test_protection(guest: Guest) -> None:
    """With PROTECT nothing is placed or read by a device, and bytes are right, if lost.

    PROTECT=auto leaves RDMA unprotected.
    """
    rounds = [{"sizes": [*EDGES, 300_000]}]
    fault = "loss=0.05,kind=multicast"
    choices: list[dict[str, object]] = [
        {"protect": "authenticate", "zero_copy": "on", "subgroups": 4, "chains": 2},
        {"protect": "encrypt", "checksum": "full"},
        {"protect": "auto"},
    ]
    games = [game(4, rounds, fault=fault, **settings) for settings in choices]
    for settings, outcomes in zip(choices, play(guest, games), strict=True):
        for outcome in outcomes:
            reads = outcome.total("read_chunks")
            assert (reads > 0) == (settings["protect"] == "auto")
            assert outcome.total("zero_copy_chunks") == 0
            assert outcome.total("rx_lost_chunks") > 0
            assert outcome.total("rx_forged_datagrams") == 0
            assert outcome.total("rx_replayed_datagrams") == 0


@pytest.mark.parametrize("join", ["cm", pytest.param("attach", marks=pytest.mark.long)])
def test_groups(guest: Guest, join: str) -> None:
    """Each device joins one group of GROUP for each subgroup, and no other group."""
    groups = ["239.77.9.4", "239.77.9.5"]
    joined = guest.work / "joined"
    gather(
        guest,
        3,
        beside="until test -e reached1; do sleep 0.02; done\n"
        f"ip -json maddress show >{joined}; touch go1",
        sizes=[CHUNK_BYTES],
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


def test_requests(guest: Guest, *, long: bool) -> None:
    """Requests complete by Test, with a responder and with PROGRESS_THREAD=off."""
    rounds = [{"sizes": [0, CHUNK_BYTES + 1, 100_000], "by_tests": True}]
    play(
        guest,
        [
            game(nranks, rounds, progress_thread=choice)
            for choice in ("on", "off")
            for nranks in ((2, 4) if long else (3,))
        ],
    )


@pytest.mark.long
def test_many(guest: Guest) -> None:
    """A thousand operations in a row, and operations of three threads, are right."""
    thousand = {"sizes": [256, 5000], "repeat": 500}
    together = {"sizes": EDGES, "repeat": 2}
    for outcomes in play(guest, [game(3, [thousand]), game(4, [together], nthreads=3)]):
        assert outcomes[0].total("rx_foreign_datagrams") == 0


def test_cost_without_loss(guest: Guest, *, long: bool) -> None:
    """Without loss, ranks send few control messages, read nothing, register nothing.

    In an operation, a rank sends the barrier's ceil(log2 P) messages, and at most one
    more.
    """
    nops = 10
    ten = {"sizes": [3 * CHUNK_BYTES], "repeat": nops, "bare": True}
    several = (2, 4, 8) if long else (2, 4)
    for outcomes in play(guest, [game(nranks, [ten] * 8) for nranks in several]):
        nranks = len(outcomes[0].ranks)
        # The rank that sends most counts, in the best of 8 rounds: a rank that gets no
        # processor for long is asked for its record. With eight ranks on one processor,
        # that happens in most rounds.
        fewest = min(
            max(stats["tx_control_datagrams"] for stats in outcome.ranks)
            for outcome in outcomes
        )
        crowded = nops if nranks > 4 else 0
        assert fewest <= nops * (math.ceil(math.log2(nranks)) + 1) + crowded
        assert sum(outcome.total("unicast_epochs") for outcome in outcomes) == 0
        quiet = [outcome for outcome in outcomes if not outcome.total("rx_lost_chunks")]
        for counter in ("reads", "map_reads", "read_chunks"):
            assert sum(outcome.total(counter) for outcome in quiet) == 0
        # Eight ranks on one processor close their operations late, so that more are
        # open at a time: the first round allocates and registers memory for them.
        settled = [each for each in quiet if each is not outcomes[0] or not crowded]
        assert sum(outcome.total("registrations") for outcome in settled) == 0
        assert len(quiet) > len(outcomes) // 2
