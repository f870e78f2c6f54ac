# SPDX-License-Identifier: BSD-3-Clause
"""Ranks of large simulated jobs that stand still for several TIMEOUTs, or end."""

from __future__ import annotations

import os
import random

import pytest
from simulated import MS, run

TIMEOUT_MS = 4_000
STOP_MS = 3 * TIMEOUT_MS
SEED = int(os.environ.get("MPIMCAST_TEST_SEED", "1"))


def spec_of(nranks: int, repair: int, draw: random.Random) -> dict[str, object]:
    """Return two operations under loss, with a rank that stands still or ends."""
    spec = {
        "seed": draw.getrandbits(32),
        "nranks": nranks,
        "nops": 2,
        "block_bytes": 20_000,
        "repair": repair,
        "loss_ppm": 10_000,
        "timeout_ns": TIMEOUT_MS * MS,
    }
    victim = draw.randrange(nranks)
    healthy = run(**spec)
    # The runs are equal up to this time, and the second operation needs the victim.
    at_ns = draw.randrange(healthy["ranks"][victim]["end_ns"] // 4)
    return {**spec, "victim": victim, "at_ns": at_ns}


@pytest.mark.parametrize("repair", [0, 1, 2])
@pytest.mark.parametrize(
    ("nranks", "count"), [(17, 10), (64, 3), (128, 1)], ids=["17", "64", "128"]
)
def test_stopped(nranks: int, count: int, repair: int) -> None:
    """All ranks wait for a rank that stands still, and have all data soon after."""
    draw = random.Random(f"{SEED} {nranks} {repair}")
    for _ in range(count):
        spec = spec_of(nranks, repair, draw)
        result = run(
            stalled_rank=spec.pop("victim"),
            stall_begin_ns=spec.pop("at_ns"),
            stall_ns=STOP_MS * MS,
            stall_period_ns=10 * STOP_MS * MS,
            **spec,
        )
        assert all(rank["done_ops"] == 2 for rank in result["ranks"]), spec
        assert STOP_MS * MS < result["time_ns"] < (STOP_MS + 1_000) * MS, spec


@pytest.mark.parametrize("repair", [0, 1])
@pytest.mark.parametrize(("nranks", "count"), [(17, 10), (64, 2)], ids=["17", "64"])
def test_ended(nranks: int, count: int, repair: int) -> None:
    """The end of a process fails all ranks that lack data long before TIMEOUT."""
    draw = random.Random(f"{SEED} {nranks} {repair}")
    for _ in range(count):
        spec = spec_of(nranks, repair, draw)
        victim = spec.pop("victim")
        result = run(ended_rank=victim, ended_ns=spec.pop("at_ns"), **spec)
        for index, rank in enumerate(result["ranks"]):
            assert index == victim or rank["error"] < 0 or rank["done_ops"] == 2
            assert rank["end_ns"] < 1_500 * MS, spec


def test_late_for_too_long() -> None:
    """LATE_TIMEOUT ends the wait on all ranks alike."""
    for victim in range(5):
        result = run(
            nranks=5,
            block_bytes=20_000,
            timeout_ns=1_000 * MS,
            late_timeout_ns=3_000 * MS,
            stalled_rank=victim,
            stall_begin_ns=0,
            stall_ns=60_000 * MS,
            stall_period_ns=600_000 * MS,
        )
        ends_ns = [r["end_ns"] for i, r in enumerate(result["ranks"]) if i != victim]
        assert all(3_000 * MS <= end_ns < 3_500 * MS for end_ns in ends_ns)
