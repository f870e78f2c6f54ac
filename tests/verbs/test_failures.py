# SPDX-License-Identifier: BSD-3-Clause
"""Ranks, devices and networks that fail: right bytes, or one error for all, soon."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ranks import Results, gather

from bench.guest.guest import Guest

NRANKS = 4
VICTIM = 2
OP = 5  # where it happens
BLOCK = 512 << 10
TIMEOUT_S = 1.5

# In both ways to wait; the second of them in the long version.
PROGRESS = ["event", pytest.param("poll", marks=pytest.mark.long)]

# What a rank says whose own connection has told it so.
BROKEN = (
    rf"rxe\d: queue pair 0x[0-9a-f]+ to rank {VICTIM}: "
    "transport retry counter exceeded"
)


@pytest.fixture
def breakable(linux: Path) -> Iterator[Guest]:
    """Return a guest whose network may be lost."""
    with Guest(linux, devices=NRANKS) as guest:
        yield guest


def suffer(guest: Guest, what: str, progress: str = "auto", **options: Any) -> Results:
    """Let one rank have a mishap; return what all others saw, with right bytes."""
    mishap = {"what": what, "rank": VICTIM, "op": OP}
    mishap["for_s"] = options.pop("for_s", 0)
    return gather(
        guest,
        NRANKS,
        failing=True,
        sizes=[BLOCK],
        repeat=40,
        settings={"timeout": TIMEOUT_S, "progress": progress},
        mishaps=[mishap],
        **options,
    )


def check_errors(results: Results) -> None:
    """See that all ended alike, in time, naming the same rank."""
    errors = {rank: result["errors"][0] for rank, result in results.items()}
    for error in errors.values():
        assert error["op"] >= OP - 1
        assert error["ranks"] == [VICTIM], errors
        assert f"rank {VICTIM}" in error["text"]
    ends = {error["op"] for error in errors.values()}
    # Some may have all data of an operation that others could not end.
    assert max(ends) - min(ends) <= 1, errors
    for rank, result in results.items():
        if rank != VICTIM:
            assert errors[rank]["seconds"] < TIMEOUT_S * 1.25 + 1
            assert result["poisoned_seconds"] < 0.2


@pytest.mark.parametrize(
    ("for_s", "progress"),
    [
        pytest.param(0, "poll", id="between", marks=pytest.mark.long),
        pytest.param(0, "event", id="between-event", marks=pytest.mark.long),
        pytest.param(0.03, "event", id="amid"),
        pytest.param(0.03, "poll", id="amid-poll", marks=pytest.mark.long),
    ],
)
def test_killed(guest: Guest, for_s: float, progress: str) -> None:
    """Before it begins, or while it sends its block."""
    results = suffer(
        guest, "kill", progress, for_s=for_s, spare=True, outlive=True, without=[VICTIM]
    )
    check_errors(results)
    texts = [result["errors"][0]["text"] for result in results.values()]
    assert any(re.search(BROKEN, text) for text in texts), texts
    assert all(result["spare"] for result in results.values())


@pytest.mark.parametrize("progress", PROGRESS)
def test_stopped(guest: Guest, progress: str) -> None:
    """Stopped for longer than TIMEOUT it is given up; going on, it learns so."""
    results = suffer(guest, "stop", progress, for_s=4, again=True)
    assert all(result["again"] for result in results.values())
    check_errors(results)


@pytest.mark.long
def test_stopped_for_a_moment(guest: Guest) -> None:
    """For less than that, it is waited for."""
    results = suffer(guest, "stop", for_s=0.5)
    assert not any(result["errors"] for result in results.values())


@pytest.mark.parametrize("for_s", [0.1, pytest.param(4, marks=pytest.mark.long)])
def test_unplugged(guest: Guest, for_s: float) -> None:
    """A device without its network; it has it again when all begin anew."""
    results = suffer(guest, "unplug", for_s=for_s, again=True)
    assert all(result["again"] for result in results.values())
    check_errors(results)


@pytest.mark.parametrize("progress", PROGRESS)
def test_interface_down(breakable: Guest, progress: str) -> None:
    """A device whose network interface is taken down."""
    results = suffer(breakable, "shut", progress, for_s=0.03, spare=True)
    check_errors(results)
    assert all(result["spare"] for result in results.values())
