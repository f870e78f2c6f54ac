# SPDX-License-Identifier: BSD-3-Clause
"""Large simulated jobs in which a rank stands still for several TIMEOUTs, or ends."""

from __future__ import annotations

import os
import random

import pytest
from simulated import MS, NAK, NEIGHBOUR, POLICIES, run

TIMEOUT_MS = 4_000
STOP_MS = 3 * TIMEOUT_MS
SEED = int(os.environ.get("MPIMCAST_TEST_SEED", "1"))


def spec_of(nranks: int, repair: int, draw: random.Random) -> dict[str, object]:
    """Return the spec of two operations under loss, with a victim and a time.

    Besides the fields of a spec it has `victim`, a rank, and `at_ns`, the time at which
    the victim is to stand still or to end.
    """
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
    # The others must still need the victim at that time, as they do in the second
    # operation. Until then a run is the same as this healthy one.
    at_ns = draw.randrange(healthy["ranks"][victim]["end_ns"] // 4)
    return {**spec, "victim": victim, "at_ns": at_ns}


@pytest.mark.parametrize("repair", POLICIES)
@pytest.mark.parametrize(
    ("nranks", "nruns"), [(17, 10), (64, 3), (128, 1)], ids=["17", "64", "128"]
)
def test_stopped(nranks: int, nruns: int, repair: int) -> None:
    """All ranks wait for a rank that stands still, and end within 1 s of its return."""
    draw = random.Random(f"{SEED} {nranks} {repair}")
    for _ in range(nruns):
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


@pytest.mark.parametrize("repair", [NAK, NEIGHBOUR])
@pytest.mark.parametrize(("nranks", "nruns"), [(17, 10), (64, 2)], ids=["17", "64"])
def test_ended(nranks: int, nruns: int, repair: int) -> None:
    """If a rank's process ends, all ranks that lack data fail long before TIMEOUT."""
    draw = random.Random(f"{SEED} {nranks} {repair}")
    for _ in range(nruns):
        spec = spec_of(nranks, repair, draw)
        victim = spec.pop("victim")
        result = run(ended_rank=victim, ended_ns=spec.pop("at_ns"), **spec)
        for index, rank in enumerate(result["ranks"]):
            assert index == victim or rank["error"] < 0 or rank["done_ops"] == 2
            assert rank["end_ns"] < 1_500 * MS, spec


def test_late_for_too_long() -> None:
    """LATE_TIMEOUT ends the wait of all ranks, half a second apart at most."""
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
