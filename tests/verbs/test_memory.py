# SPDX-License-Identifier: BSD-3-Clause
"""Returned memory is never written, and the user's memory is rarely registered."""

from __future__ import annotations

import pytest
from ranks import CHUNK
from rounds import game, losing, play

from bench.guest.guest import Guest

NRANKS = 4
LOSS = losing([1, 3], "loss 5%")
LOSS_OF_TWO = losing([0, 1], "loss 10%")


def poisoned(guest: Guest, repair: str, repeat: int) -> None:
    """Check, under loss, that results returned long ago are not written again."""
    spoilt = {"sizes": [5 * CHUNK], "repeat": repeat, "place": "poisoned"}
    rounds = [{**spoilt, **LOSS_OF_TWO}]
    ((outcome,),) = play(guest, [game(2, rounds, repair=repair)])
    assert outcome.total("rx_repaired_chunks") > 0


def test_poisoned(guest: Guest) -> None:
    """A thousand operations with reads never write to memory that was returned."""
    poisoned(guest, "read", 1000)


@pytest.mark.parametrize(
    "repair", ["nak", pytest.param("neighbour", marks=pytest.mark.long)]
)
def test_poisoned_by_messages(guest: Guest, repair: str, *, long: bool) -> None:
    """Operations with repairs by messages never write to memory that was returned."""
    poisoned(guest, repair, 1000 if long else 200)


def test_registrations(guest: Guest) -> None:
    """Numpy's memory is registered when it is to be read, the library's once."""
    repeat = 8
    fresh = {"sizes": [200_000], "repeat": repeat}
    owned = {**fresh, "place": "owned"}
    rounds = [fresh, fresh, {**fresh, **LOSS}, owned, {**owned, **LOSS}]
    # The first round registers the memory of the operations themselves.
    ((_, *outcomes),) = play(guest, [game(NRANKS, rounds)])
    for outcome in outcomes:
        assert outcome.total("unicast_epochs") == 0, outcome
    by_rank = [[each["registrations"] for each in out.ranks] for out in outcomes]
    nothing, spoilt, *once = by_rank
    if outcomes[0].total("rx_lost_chunks") == 0:
        assert not any(nothing)
    # At most once per operation, on ranks whose right neighbour lacked something.
    assert all(count <= repeat for count in spoilt)
    assert spoilt[0] > repeat // 2
    assert spoilt[2] > repeat // 2
    # Each round receives into memory of its own.
    for counts in once:
        assert all(count <= 1 for count in counts), by_rank
