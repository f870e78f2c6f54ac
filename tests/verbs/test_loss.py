# SPDX-License-Identifier: BSD-3-Clause
"""Ranks read the chunks that the switch loses, and no others, from left neighbours."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from ranks import CHUNK_BYTES, gather
from ranks import losing as lossy
from rounds import Outcome, game, losing, missing, play

from bench.guest.guest import Guest

NRANKS = 4
BLOCK_CHUNKS = 60
# The last chunk of a block is shorter.
BLOCK_BYTES = BLOCK_CHUNKS * CHUNK_BYTES - 1000
VICTIM = 1  # the rank that loses chunks

# How often a round is played at most. A rank that is late in a round also reads chunks
# that are not lost but only on their way.
TRIES = 6


def check_equal(outcome: Outcome) -> bool:
    """Check that each lost chunk was fetched; return whether no other was read."""
    outcome.check()
    assert outcome.total("failed_reads") == 0, outcome
    assert outcome.total("unicast_epochs") == 0, outcome
    return outcome.total("read_chunks") == outcome.dropped


def play_until(
    guest: Guest,
    rounds: Sequence[dict[str, Any]],
    is_exact: Callable[[Outcome], bool] = check_equal,
) -> list[Outcome]:
    """Play rounds until each has had an outcome in which no rank fetched too much.

    Parameters
    ----------
    guest, rounds
        The guest, and the rounds to play.
    is_exact
        A function that checks what must hold even if a rank is late, and returns
        whether no more was fetched than was lost.

    Returns
    -------
    list of Outcome
        For each round, the outcome for which `is_exact` returned true.
    """
    exact: dict[int, Outcome] = {}
    for _ in range(TRIES):
        left = [number for number in range(len(rounds)) if number not in exact]
        (outcomes,) = play(guest, [game(NRANKS, [rounds[number] for number in left])])
        played = zip(left, outcomes, strict=True)
        exact |= {number: each for number, each in played if is_exact(each)}
        if len(exact) == len(rounds):
            return [exact[number] for number in sorted(exact)]
    pytest.fail(f"more was fetched than dropped, {TRIES} times: {outcomes}")


def test_random(guest: Guest) -> None:
    """Each chunk that the switch drops at random is read once.

    That holds even if a rank's left neighbour also lacks the chunk.
    """
    # The ranks whose ports lose chunks, the percentage, and the number of operations.
    cases = [([1, 3], 1, 8), ([1, 3], 5, 4), ([1, 3], 20, 3), ([1, 2], 20, 3)]
    rounds = [
        {"sizes": [BLOCK_BYTES], "repeat": repeat, **losing(ports, f"loss {percent}%")}
        for ports, percent, repeat in cases
    ]
    outcomes = play_until(guest, rounds)
    assert all(outcome.dropped > 0 for outcome in outcomes), outcomes


def test_first_last_and_consecutive(guest: Guest) -> None:
    """Lost chunks are read: the first of a block, its last, or 30 in a row."""
    # The first chunks of the blocks of ranks other than the victim.
    firsts = [0, 2 * BLOCK_CHUNKS, 3 * BLOCK_CHUNKS]
    lost = [
        firsts,
        [first + BLOCK_CHUNKS - 1 for first in firsts],
        [first + chunk for first in firsts for chunk in range(20, 50)],
    ]
    rounds = [
        {"sizes": [BLOCK_BYTES], "repeat": 3, **missing(VICTIM, chunks)}
        for chunks in lost
    ]
    outcomes = play_until(guest, rounds)
    assert [each.dropped for each in outcomes] == [3 * len(each) for each in lost]


def test_small_receive_rings(guest: Guest) -> None:
    """Chunks lost at the end of a ring of posted receives are repaired.

    Chunks for which a ring of 4 or 8 receives has no room are repaired too.
    """
    ring = 32
    places = [1, ring - 1, ring, ring + 1]
    lost = [[place - 1] for place in places] + [[place - 1 for place in places]]
    rounds = [
        {"sizes": [BLOCK_BYTES], "repeat": 2, **missing(VICTIM, chunks)}
        for chunks in lost
    ]
    small = [{"sizes": [3 * CHUNK_BYTES, BLOCK_BYTES // 2]}]
    games = [game(2, rounds, receives=ring, chains=1)]
    # Even smaller rings would also lose probes, and the transport would not open.
    games += [game(2, small, receives=4), game(NRANKS, small, receives=8)]
    outcomes, *_ = play(guest, games)
    for outcome, chunks in zip(outcomes, lost, strict=True):
        # The ring may also overflow, so that more is read than was dropped.
        outcome.check()
        assert outcome.dropped == 2 * len(chunks), outcome


def test_reordered(guest: Guest) -> None:
    """Chunks that arrive late, twice or out of order are hardly ever read."""
    slow = "delay 1ms 0.5ms duplicate 3% limit 20000"
    repeat = 6
    rounds = [
        {
            "sizes": [BLOCK_BYTES],
            "repeat": repeat,
            **losing([1, 3], f"{slow} loss 5%", "delay 1ms limit 20000"),
        }
    ]
    expected = repeat * NRANKS * (NRANKS - 1) * BLOCK_CHUNKS

    def is_exact(outcome: Outcome) -> bool:
        received = outcome.total("rx_multicast_datagrams")
        duplicates = received - (expected - outcome.dropped)
        assert duplicates > 0, outcome
        unused = outcome.total("rx_unparked_datagrams")
        refused = outcome.total("rx_duplicate_chunks")
        # Each chunk is placed once, however often it arrives.
        assert received - unused + outcome.fetched - refused == expected, outcome
        return outcome.fetched <= 1.1 * outcome.dropped + duplicates

    play_until(guest, rounds, is_exact)


def test_late_neighbour(guest: Guest) -> None:
    """Lost chunks are read from a left neighbour even if it enters 1 s late.

    The first round's blocks are eager: sent before entry. The second round's are not.
    """
    small = {"sizes": [2000], "repeat": 2, **missing(VICTIM, [2, 3])}
    large = {"sizes": [BLOCK_BYTES], **losing([VICTIM], "loss 20%")}
    late = {"late": {str(VICTIM - 1): 1.0}}
    ((eager, bulk),) = play(
        guest, [game(NRANKS, [{**small, **late}, {**large, **late}])]
    )
    check_equal(eager)
    assert eager.dropped == 4
    check_equal(bulk)
    assert bulk.dropped > 0


def test_strides(guest: Guest) -> None:
    """Lost chunks are read even if ranks receive with holes of different sizes."""
    strided = {"sizes": [100, 4000, 4100, 100_000], "repeat": 2, "place": "strided"}
    rounds = [strided, {**strided, **losing([1, 3], "loss 10%")}]
    ((_, outcome),) = play(guest, [game(NRANKS, rounds)])
    check_equal(outcome)
    assert outcome.dropped > 0


@pytest.mark.parametrize("after_s", [pytest.param(0.003, marks=pytest.mark.long), 0.02])
def test_dying_neighbour(guest: Guest, after_s: float) -> None:
    """If a rank dies while its memory is read, all other ranks name it."""
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
            open_first=True,
            use_spare=True,
            settings={"timeout": timeout_s},
            mishaps=[{"what": "die", "rank": dying, "op": 3, "for_s": after_s}],
        )
    for result in results.values():
        (error, *_) = result["errors"]
        # A rank that had all its data may complete one operation more than the others.
        assert error["op"] in (2, 3, 4), results
        assert error["ranks"] == [dying], results
        assert error["seconds"] < 2 * timeout_s + 5
        assert result["spare_worked"]
