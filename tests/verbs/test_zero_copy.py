# SPDX-License-Identifier: BSD-3-Clause
"""With ZERO_COPY the device puts chunks in their places, and they are not copied."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import results
import support
from ranks import CHUNK_BYTES, job, losing

from bench.guest.guest import Guest

PROGRAM = Path(__file__).with_name("zero_copy_rank.py")
NRANKS = 4
VICTIM = 2
NOPS = 5
NCHUNKS = 300  # per block
RECEIVES = 64  # posted receives of a queue
TIMEOUT_S = 1.5


def run(
    guest: Guest,
    *,
    owned: bool = True,
    mishap: str = "",
    after_s: float = 0,
    **settings: Any,
) -> results.Results:
    """Run a job of zero_copy_rank.py; check every byte, and return the results.

    Parameters
    ----------
    guest
        The guest to run in.
    owned, mishap, after_s
        See zero_copy_rank.Rank.
    **settings
        Settings that are added to the defaults below, or replace them.
    """
    defaults = {
        "zero_copy": True,
        "subgroups": NRANKS + 1,  # one for each chain, and the last for control
        "receives": RECEIVES,
        "timeout": TIMEOUT_S if mishap else 10,
    }
    folder, command = job(
        guest,
        NRANKS,
        outlive=mishap == "die",
        program=PROGRAM,
        nbytes=NCHUNKS * CHUNK_BYTES - 7,
        nops=NOPS,
        owned=owned,
        mishap=mishap,
        after_s=after_s,
        victim=VICTIM,
        settings={**defaults, **settings},
    )
    status, text = guest.run_unchecked(command, limit_s=100, cwd=support.ROOT)
    died = {VICTIM} if mishap == "die" else set()
    ranks = [rank for rank in range(NRANKS) if rank not in died]
    outcomes = results.read(folder, ranks, why=f"{status}\n{text}")
    for result in outcomes.values():
        assert result["explained"].startswith("verbs")
    return outcomes


def total(outcomes: results.Results, counter: str) -> int:
    """Return the sum of a counter over the ranks; check that no rank failed."""
    assert not any(each["error"] for each in outcomes.values())
    return results.total(outcomes, counter)


def test_nothing_lost(guest: Guest) -> None:
    """Chunks are not copied, except those that take receives posted earlier.

    There are at most twice RECEIVES such chunks in a block.
    """
    outcomes = run(guest)
    if total(outcomes, "rx_lost_chunks") == 0:
        assert total(outcomes, "evacuated_chunks") == 0
        nblocks = NOPS * NRANKS * (NRANKS - 1)
        least = nblocks * (NCHUNKS - 2 * RECEIVES)
        assert total(outcomes, "zero_copy_chunks") >= least
    assert total(outcomes, "zero_copy_chunks") > 0
    # Each result is registered once, and mpimcast's own memory adds registrations.
    assert total(outcomes, "registrations") <= NRANKS * (8 + 2)


@pytest.mark.long
def test_other_memory(guest: Guest) -> None:
    """Chunks are copied into memory not from mpimcast.empty; it is not registered."""
    outcomes = run(guest, owned=False)
    assert total(outcomes, "zero_copy_chunks") == 0
    if total(outcomes, "rx_lost_chunks") == 0:
        assert total(outcomes, "registrations") <= NRANKS * 2


@pytest.mark.long
@pytest.mark.parametrize(
    ("subgroups", "checksum"),
    [
        (2, "header"),
        (NRANKS, "header"),
        (NRANKS + 1, "off"),
        (NRANKS + 1, "full"),
    ],
)
def test_subgroups(guest: Guest, subgroups: int, checksum: str) -> None:
    """Chunks are copied if a subgroup carries several chains or control messages."""
    outcomes = run(guest, subgroups=subgroups, chains="all", checksum=checksum)
    assert (total(outcomes, "zero_copy_chunks") > 0) == (subgroups > NRANKS)


@pytest.mark.long
def test_chains_of_several_ranks(guest: Guest) -> None:
    """Chunks need not be copied even in chains whose ranks get their own chunks too."""
    outcomes = run(guest, chains="2", subgroups=3, progress="event")
    assert total(outcomes, "zero_copy_chunks") > 0


@pytest.mark.parametrize(
    "netem",
    [
        pytest.param("loss 1%", marks=pytest.mark.long),
        "loss 20%",
        pytest.param(
            "delay 2ms 1ms reorder 50% duplicate 5% limit 20000", marks=pytest.mark.long
        ),
    ],
)
def test_mispredicted(guest: Guest, netem: str) -> None:
    """A chunk that the device put in another chunk's place is copied out of it."""
    with ExitStack() as stack:
        for port in (1, 3):
            stack.enter_context(losing(guest, port, netem))
        outcomes = run(guest)
    assert total(outcomes, "evacuated_chunks") > 0
    assert total(outcomes, "zero_copy_chunks") > 0
    assert total(outcomes, "read_chunks") <= total(outcomes, "rx_lost_chunks")


@pytest.mark.long
@pytest.mark.parametrize("after_s", [0.02, 0.1])
def test_interrupted(guest: Guest, after_s: float) -> None:
    """After an exception in an operation, nothing is written to any rank's memory."""
    outcomes = run(guest, mishap="interrupt", after_s=after_s)
    assert outcomes[VICTIM]["error"] in ("Interrupted", "")
    if outcomes[VICTIM]["error"]:
        assert any(outcomes[rank]["error"] for rank in outcomes if rank != VICTIM)


@pytest.mark.long
def test_died(guest: Guest) -> None:
    """When a rank dies, all others fail; later nothing is written to their memory."""
    outcomes = run(guest, mishap="die", after_s=0.02)
    assert all(each["error"] for each in outcomes.values())
