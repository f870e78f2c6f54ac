# SPDX-License-Identifier: BSD-3-Clause
"""Messages between pairs of ranks go over RDMA devices, by unicast."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
import support
from ranks import CHUNK_BYTES, job, losing

from bench.guest.guest import Guest

PROGRAM = Path(__file__).with_name("pair_rank.py")

SIZES = [0, 1, CHUNK_BYTES, 20 * CHUNK_BYTES + 1, 3_000_000]


def told(guest: Guest, nranks: int, **settings: Any) -> list[dict[str, Any]]:
    """Run a job of pairs; return what each rank tells."""
    folder, command = job(
        guest, nranks, program=PROGRAM, settings=settings, sizes=SIZES
    )
    guest.run(command, limit_s=100, cwd=support.ROOT)
    return [json.loads((folder / f"{each}.json").read_text()) for each in range(nranks)]


@pytest.mark.parametrize("nranks", [2, 4])
def test_messages(guest: Guest, nranks: int) -> None:
    """Messages arrive whole, and the path says that they go by unicast."""
    for rank in told(guest, nranks):
        assert "RoCE unicast" in rank["path"]
        assert rank["counters"]["rx_multicast_bytes"] >= sum(SIZES)


def test_messages_that_are_lost(guest: Guest) -> None:
    """What the switch drops, control messages included, is sent again."""
    with contextlib.ExitStack() as lossy:
        for number in (0, 1):
            lossy.enter_context(losing(guest, number, "loss 3%", multicast_only=False))
        ranks = told(guest, 2)
    for rank in ranks:
        counters = rank["counters"]
        assert counters["rx_lost_chunks"] > 0
        assert counters["read_chunks"] == 0
