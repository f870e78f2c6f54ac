# SPDX-License-Identifier: BSD-3-Clause
"""Chunks are received right in their places, without a copy."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import results
import support
from ranks import CHUNK, job, losing

from bench.guest.guest import Guest

PROGRAM = Path(__file__).with_name("zero_copy_rank.py")
NRANKS = 4
VICTIM = 2
NOPS = 5
NCHUNKS = 300  # per block
RECEIVES = 64
TIMEOUT_S = 1.5


def run(
    guest: Guest,
    *,
    owned: bool = True,
    mishap: str = "",
    after_s: float = 0,
    **settings: Any,
) -> results.Results:
    """Run a job of zero_copy_rank.py; return the results, with every byte right."""
    ours = {
        "zero_copy": True,
        "subgroups": NRANKS + 1,  # the last is for control
        "receives": RECEIVES,
        "timeout": TIMEOUT_S if mishap else 10,
    }
    folder, command = job(
        guest,
        NRANKS,
        outlive=mishap == "die",
        program=PROGRAM,
        nbytes=NCHUNKS * CHUNK - 7,
        nops=NOPS,
        owned=owned,
        mishap=mishap,
        after_s=after_s,
        victim=VICTIM,
        settings={**ours, **settings},
    )
    status, text = guest.run_unchecked(command, limit_s=100, cwd=support.ROOT)
    died = {VICTIM} if mishap == "die" else set()
    ranks = [rank for rank in range(NRANKS) if rank not in died]
    said = results.read(folder, ranks, why=f"{status}\n{text}")
    for result in said.values():
        assert result["explained"].startswith("verbs")
    return said


def total(said: results.Results, counter: str) -> int:
    """Return the sum of a counter over the ranks, none of which may have failed."""
    assert not any(each["error"] for each in said.values())
    return results.total(said, counter)


def test_nothing_lost(guest: Guest) -> None:
    """Chunks are not copied, except those that take receives posted earlier."""
    said = run(guest)
    if total(said, "rx_lost_chunks") == 0:
        assert total(said, "evacuated_chunks") == 0
        blocks = NOPS * NRANKS * (NRANKS - 1)
        least = blocks * (NCHUNKS - 2 * RECEIVES)
        assert total(said, "zero_copy_chunks") >= least
    assert total(said, "zero_copy_chunks") > 0
    # Each result is registered once; the operations' own memory makes up the rest.
    assert total(said, "registrations") <= NRANKS * (8 + 2)


@pytest.mark.long
def test_other_memory(guest: Guest) -> None:
    """Chunks are copied to memory that is not the library's, without registering it."""
    said = run(guest, owned=False)
    assert total(said, "zero_copy_chunks") == 0
    if total(said, "rx_lost_chunks") == 0:
        assert total(said, "registrations") <= NRANKS * 2


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
    """Chunks are copied where a subgroup carries several chains, or control."""
    said = run(guest, subgroups=subgroups, chains="all", checksum=checksum)
    assert (total(said, "zero_copy_chunks") > 0) == (subgroups > NRANKS)


@pytest.mark.long
def test_turns(guest: Guest) -> None:
    """Chunks are not copied in chains whose ranks receive their own chunks too."""
    said = run(guest, chains="2", subgroups=3, progress="event")
    assert total(said, "zero_copy_chunks") > 0


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
    """Chunks in another chunk's place are evacuated, and every byte is right."""
    with ExitStack() as stack:
        for port in (1, 3):
            stack.enter_context(losing(guest, port, netem))
        said = run(guest)
    assert total(said, "evacuated_chunks") > 0
    assert total(said, "zero_copy_chunks") > 0
    assert total(said, "read_chunks") <= total(said, "rx_lost_chunks")


@pytest.mark.long
@pytest.mark.parametrize("after_s", [0.02, 0.1])
def test_interrupted(guest: Guest, after_s: float) -> None:
    """A rank that gives an operation up gets its memory back, and so do others."""
    said = run(guest, mishap="interrupt", after_s=after_s)
    assert said[VICTIM]["error"] in ("Interrupted", "")
    if said[VICTIM]["error"]:
        assert any(said[rank]["error"] for rank in said if rank != VICTIM)


@pytest.mark.long
def test_died(guest: Guest) -> None:
    """Survivors fail when a rank dies, and nothing is written to their memory later."""
    said = run(guest, mishap="die", after_s=0.02)
    assert all(each["error"] for each in said.values())
