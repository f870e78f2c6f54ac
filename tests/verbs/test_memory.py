# SPDX-License-Identifier: BSD-3-Clause
"""No result is written after the return, and memory is registered only if needed."""

from __future__ import annotations

import pytest
from ranks import CHUNK_BYTES
from rounds import game, losing, play

from bench.guest.guest import Guest

NRANKS = 4
# What a round makes the switch lose: at two of four devices, or at both of two.
LOSS_OF_FOUR = losing([1, 3], "loss 5%")
LOSS_OF_TWO = losing([0, 1], "loss 10%")


def check_never_written(guest: Guest, repair: str, repeat: int) -> None:
    """Check that old results are not written again under loss with a policy.

    Ranks fill each result with poison after the return, and check the poison later.
    """
    poisoned = {"sizes": [5 * CHUNK_BYTES], "repeat": repeat, "place": "poisoned"}
    rounds = [{**poisoned, **LOSS_OF_TWO}]
    ((outcome,),) = play(guest, [game(2, rounds, repair=repair)])
    assert outcome.total("rx_repaired_chunks") > 0


def test_reads_write_no_old_result(guest: Guest) -> None:
    """A thousand operations repaired by reads write to no result after the return."""
    check_never_written(guest, "read", 1000)


@pytest.mark.parametrize(
    "repair", ["nak", pytest.param("neighbour", marks=pytest.mark.long)]
)
def test_repairs_write_no_old_result(guest: Guest, repair: str, *, long: bool) -> None:
    """Operations repaired by datagrams write to no result after the return."""
    check_never_written(guest, repair, 1000 if long else 200)


def test_registrations(guest: Guest) -> None:
    """Numpy's memory is registered only if it is to be read; mpimcast.empty's, once.

    A rank's result is read by its right neighbour if that rank has lost chunks.
    """
    repeat = 8
    fresh = {"sizes": [200_000], "repeat": repeat}
    owned = {**fresh, "place": "owned"}
    rounds = [fresh, fresh, {**fresh, **LOSS_OF_FOUR}]
    rounds += [owned, {**owned, **LOSS_OF_FOUR}]
    # The first round is left out: in it mpimcast registers its own memory.
    ((_, *outcomes),) = play(guest, [game(NRANKS, rounds)])
    for outcome in outcomes:
        assert outcome.total("unicast_epochs") == 0, outcome
    by_rank = [[each["registrations"] for each in out.ranks] for out in outcomes]
    fresh_counts, lossy_counts, *owned_counts = by_rank
    if outcomes[0].total("rx_lost_chunks") == 0:
        assert not any(fresh_counts)
    # Memory is registered at most once for each result. Ranks 0 and 2 are the left
    # neighbours of ranks 1 and 3, for which the switch loses chunks.
    assert all(count <= repeat for count in lossy_counts)
    assert lossy_counts[0] > repeat // 2
    assert lossy_counts[2] > repeat // 2
    # A round receives all its results in the same memory.
    for counts in owned_counts:
        assert all(count <= 1 for count in counts), by_rank
