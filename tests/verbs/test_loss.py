# SPDX-License-Identifier: BSD-3-Clause
"""What multicast loses is read from the left neighbour's memory."""

from __future__ import annotations

import pytest
from ranks import dropped, gather, losing, total

from bench.guest.guest import Guest

NRANKS = 4
SIZES = [300_000] * 5


def test_nothing_lost(guest: Guest) -> None:
    """Where nothing is lost nothing is read, and few messages are sent."""
    results = gather(guest, NRANKS, sizes=SIZES)
    assert total(results, "reads") == 0
    assert total(results, "map_reads") == 0


@pytest.mark.parametrize("percent", [1, 5, 20])
def test_multicast_lost(guest: Guest, percent: int) -> None:
    """Every chunk that a port drops is read once, and nothing else."""
    with losing(guest, 1, f"loss {percent}%"), losing(guest, 3, f"loss {percent}%"):
        results = gather(guest, NRANKS, sizes=SIZES)
        lost = dropped(guest, 1) + dropped(guest, 3)
    assert lost > 0

    assert total(results, "rx_lost_chunks") == total(results, "read_chunks")
    assert total(results, "read_chunks") <= lost
    assert total(results, "tx_repair_datagrams") == 0
    assert total(results, "failed_reads") == 0
