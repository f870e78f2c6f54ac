# SPDX-License-Identifier: BSD-3-Clause
"""Exactly the chunks that multicast loses are read from the left neighbour."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from ranks import CHUNK, gather
from ranks import losing as lossy
from rounds import Outcome, game, losing, missing, play

from bench.guest.guest import Guest

NRANKS = 4
BLOCK_CHUNKS = 60
BLOCK = BLOCK_CHUNKS * CHUNK - 1000
VICTIM = 1

# How often a case is played at most, until no rank was late in it.
TRIES = 6


def check_equal(outcome: Outcome) -> bool:
    """Check that lost chunks arrived once more; return whether reads match drops."""
    outcome.check()
    assert outcome.total("failed_reads") == 0, outcome
    assert outcome.total("unicast_epochs") == 0, outcome
    return outcome.total("read_chunks") == outcome.dropped


def play_until(
    guest: Guest,
    rounds: Sequence[dict[str, Any]],
    is_spare: Callable[[Outcome], bool] = check_equal,
) -> list[Outcome]:
    """Play rounds until each was played without a late rank.

    Parameters
    ----------
    guest, rounds
        The guest, and the rounds to play.
    is_spare
        Checks what holds at any speed, and returns whether no more was fetched than
        was dropped.

    Returns
    -------
    list of Outcome
        For each round, the outcome for which `is_spare` returned true.
    """
    spare: dict[int, Outcome] = {}
    for _ in range(TRIES):
        left = [number for number in range(len(rounds)) if number not in spare]
        (outcomes,) = play(guest, [game(NRANKS, [rounds[number] for number in left])])
        played = zip(left, outcomes, strict=True)
        spare |= {number: each for number, each in played if is_spare(each)}
        if len(spare) == len(rounds):
            return [spare[number] for number in sorted(spare)]
    pytest.fail(f"more was fetched than dropped, {TRIES} times: {outcomes}")


def test_random(guest: Guest) -> None:
    """Each chunk that a port drops is read once, even if two neighbours lack it."""
    cases = [([1, 3], 1, 8), ([1, 3], 5, 4), ([1, 3], 20, 3), ([1, 2], 20, 3)]
    rounds = [
        {"sizes": [BLOCK], "repeat": repeat, **losing(ports, f"loss {percent}%")}
        for ports, percent, repeat in cases
    ]
    outcomes = play_until(guest, rounds)
    assert all(outcome.dropped > 0 for outcome in outcomes), outcomes


def test_places(guest: Guest) -> None:
    """The first chunks of blocks, the last ones, and many in a row are read."""
    firsts = [0, 2 * BLOCK_CHUNKS, 3 * BLOCK_CHUNKS]
    lost = [
        firsts,
        [first + BLOCK_CHUNKS - 1 for first in firsts],
        [first + chunk for first in firsts for chunk in range(20, 50)],
    ]
    rounds = [
        {"sizes": [BLOCK], "repeat": 3, **missing(VICTIM, chunks)} for chunks in lost
    ]
    outcomes = play_until(guest, rounds)
    assert [each.dropped for each in outcomes] == [3 * len(each) for each in lost]


def test_rings(guest: Guest) -> None:
    """Losses at the end of a receive ring, and those of small rings, are repaired."""
    ring = 32
    places = [1, ring - 1, ring, ring + 1]
    lost = [[place - 1] for place in places] + [[place - 1 for place in places]]
    rounds = [
        {"sizes": [BLOCK], "repeat": 2, **missing(VICTIM, chunks)} for chunks in lost
    ]
    small = [{"sizes": [3 * CHUNK, BLOCK // 2]}]
    games = [game(2, rounds, receives=ring, chains=1)]
    # Still smaller rings would lose probes too, and the transport would not open.
    games += [game(2, small, receives=4), game(NRANKS, small, receives=8)]
    outcomes, *_ = play(guest, games)
    for outcome, chunks in zip(outcomes, lost, strict=True):
        # The ring itself may overflow too.
        outcome.check()
        assert outcome.dropped == 2 * len(chunks), outcome


def test_reordered(guest: Guest) -> None:
    """Chunks that arrive late, twice or out of order are hardly ever read as well."""
    slow = "delay 1ms 0.5ms duplicate 3% limit 20000"
    repeat = 6
    rounds = [
        {
            "sizes": [BLOCK],
            "repeat": repeat,
            **losing([1, 3], f"{slow} loss 5%", "delay 1ms limit 20000"),
        }
    ]
    expected = repeat * NRANKS * (NRANKS - 1) * BLOCK_CHUNKS

    def is_spare(outcome: Outcome) -> bool:
        came = outcome.total("rx_multicast_datagrams")
        twice = came - (expected - outcome.dropped)
        assert twice > 0, outcome
        unused = outcome.total("rx_unparked_datagrams")
        repeated = outcome.total("rx_duplicate_chunks")
        # Each chunk is placed once, however often it arrives.
        assert came - unused + outcome.fetched - repeated == expected, outcome
        return outcome.fetched <= 1.1 * outcome.dropped + twice

    play_until(guest, rounds, is_spare)


def test_late_neighbour(guest: Guest) -> None:
    """Chunks lost before the left neighbour enters are read once it has entered."""
    small = {"sizes": [2000], "repeat": 2, **missing(VICTIM, [2, 3])}
    large = {"sizes": [BLOCK], **losing([VICTIM], "loss 20%")}
    late = {"late": {str(VICTIM - 1): 1.0}}
    ((eager, bulk),) = play(
        guest, [game(NRANKS, [{**small, **late}, {**large, **late}])]
    )
    check_equal(eager)
    assert eager.dropped == 4
    check_equal(bulk)
    assert bulk.dropped > 0


def test_strides(guest: Guest) -> None:
    """Lost chunks are read even if each rank receives with holes of another size."""
    strided = {"sizes": [100, 4000, 4100, 100_000], "repeat": 2, "place": "strided"}
    rounds = [strided, {**strided, **losing([1, 3], "loss 10%")}]
    ((_, outcome),) = play(guest, [game(NRANKS, rounds)])
    check_equal(outcome)
    assert outcome.dropped > 0


@pytest.mark.parametrize("after_s", [pytest.param(0.003, marks=pytest.mark.long), 0.02])
def test_dying_neighbour(guest: Guest, after_s: float) -> None:
    """All survivors name a rank that dies while its memory is read."""
    dying, block, timeout_s = 2, 512 << 10, 1.5
    with lossy(guest, dying + 1, "loss 20%"):
        results = gather(
            guest,
            NRANKS,
            failing=True,
            outlive=True,
            without=[dying],
            sizes=[block],
            repeat=6,
            warm=True,
            spare=True,
            settings={"timeout": timeout_s},
            mishaps=[{"what": "die", "rank": dying, "op": 3, "for_s": after_s}],
        )
    for result in results.values():
        (error, *_) = result["errors"]
        # A rank that had all its data has completed one operation more.
        assert error["op"] in (2, 3, 4), results
        assert error["ranks"] == [dying], results
        assert error["seconds"] < 2 * timeout_s + 5
        assert result["spare"]
