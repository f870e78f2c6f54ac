# SPDX-License-Identifier: BSD-3-Clause
"""After a failure all ranks soon get right bytes, or errors that name the same rank."""

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
OP = 5  # the operation that the mishap hits
BLOCK = 512 << 10
TIMEOUT_S = 1.5

# How long a busy machine may take for work that needs only a moment.
BUSY_S = 5

# For tests that stop ranks: a TIMEOUT that suffices to open a job on a busy machine,
# and a stop that is longer than two of them.
PATIENCE_S = 4
STOP_S = 10

# How long a port is down.
FLAP_S = 4

# Both ways to wait for completions; polling is tested in the long version only.
PROGRESS = ["event", pytest.param("poll", marks=pytest.mark.long)]

# The error of a rank that got no answer, or whose connection to the victim broke.
SILENT = (
    rf"rank {VICTIM} has not answered within TIMEOUT|"
    rf"rxe\d: queue pair 0x[0-9a-f]+ to rank {VICTIM}: "
    "transport retry counter exceeded"
)


@pytest.fixture
def breakable(linux: Path) -> Iterator[Guest]:
    """Return a guest whose network may be lost."""
    with Guest(linux, devices=NRANKS) as guest:
        yield guest


def suffer(guest: Guest, what: str, progress: str = "auto", **options: Any) -> Results:
    """Run a job in which one rank has a mishap; return its results, bytes checked."""
    mishap = {"what": what, "rank": VICTIM, "op": OP}
    mishap["for_s"] = options.pop("for_s", 0)
    return gather(
        guest,
        NRANKS,
        failing=True,
        sizes=[BLOCK],
        repeat=40,
        warm=True,
        settings={
            "timeout": options.pop("timeout_s", TIMEOUT_S),
            "progress": progress,
        },
        mishaps=[mishap],
        **options,
    )


def check_errors(results: Results) -> None:
    """Check that all ranks failed in time, and that their errors name the victim."""
    errors = {rank: result["errors"][0] for rank, result in results.items()}
    for error in errors.values():
        assert error["op"] >= OP - 1
        assert error["ranks"] == [VICTIM], errors
        assert f"rank {VICTIM}" in error["text"]
    ends = {error["op"] for error in errors.values()}
    # Some ranks may have completed an operation that others could not.
    assert max(ends) - min(ends) <= 1, errors
    for rank, result in results.items():
        if rank != VICTIM:
            assert errors[rank]["seconds"] < TIMEOUT_S * 1.25 + BUSY_S
            # An operation on a poisoned stream waits for no rank.
            assert result["poisoned_seconds"] < TIMEOUT_S


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
    """Survivors name a rank killed before an operation, or while it sends."""
    results = suffer(
        guest, "kill", progress, for_s=for_s, spare=True, outlive=True, without=[VICTIM]
    )
    check_errors(results)
    texts = [result["errors"][0]["text"] for result in results.values()]
    assert any(re.search(SILENT, text) for text in texts), texts
    assert all(result["spare"] for result in results.values())


@pytest.mark.parametrize("progress", PROGRESS)
def test_stopped(guest: Guest, progress: str) -> None:
    """Ranks wait for one stopped longer than TIMEOUT: its device vouches for it."""
    results = suffer(guest, "stop", progress, for_s=STOP_S, timeout_s=PATIENCE_S)
    assert not any(result["errors"] for result in results.values()), results
    longest_s = max(
        seconds
        for rank, result in results.items()
        if rank != VICTIM
        for seconds in result["seconds"]
    )
    assert longest_s > 1.5 * PATIENCE_S


def test_killed_while_stopped(guest: Guest) -> None:
    """The others wait for a stopped rank, and name it once its queue pairs are gone."""
    results = suffer(
        guest,
        "stop_kill",
        for_s=STOP_S,
        timeout_s=PATIENCE_S,
        spare=True,
        outlive=True,
        without=[VICTIM],
    )
    errors = [result["errors"][0] for result in results.values()]
    assert all(error["ranks"] == [VICTIM] for error in errors), errors
    # A rank that was about to enter when the others failed has not waited.
    longest_s = max(error["seconds"] for error in errors)
    assert 1.5 * PATIENCE_S < longest_s < STOP_S + PATIENCE_S + BUSY_S, errors
    assert all(result["spare"] for result in results.values())


def test_computing_without_a_thread(guest: Guest) -> None:
    """With PROGRESS_THREAD=off a rank may compute for longer than TIMEOUT."""
    results = gather(
        guest,
        NRANKS,
        sizes=[BLOCK],
        repeat=OP + 3,
        settings={"timeout": PATIENCE_S, "progress_thread": "off"},
        mishaps=[
            {"what": "late", "rank": VICTIM, "op": OP, "for_s": STOP_S},
            {"what": "late", "rank": 0, "op": OP + 1, "for_s": STOP_S},
        ],
    )
    longest_s = max(max(result["seconds"]) for result in results.values())
    assert longest_s > 1.5 * PATIENCE_S


def test_unplugged(guest: Guest) -> None:
    """All ranks name one whose device loses its network; later all work anew."""
    results = suffer(guest, "unplug", for_s=FLAP_S, again=True)
    assert all(result["again"] for result in results.values())
    check_errors(results)


@pytest.mark.timeout(150, func_only=True)
@pytest.mark.parametrize("progress", PROGRESS)
def test_flapping(guest: Guest, progress: str) -> None:
    """A port that is down for less than half of TIMEOUT fails no rank."""
    results = suffer(guest, "unplug", progress, for_s=FLAP_S, timeout_s=2.5 * FLAP_S)
    assert not any(result["errors"] for result in results.values()), results
    # The flap began amid the operations, and connections were made anew.
    assert max(max(result["seconds"]) for result in results.values()) > FLAP_S / 2
    assert results[VICTIM]["stats"]["reconnects"] > 0
    assert results[VICTIM]["stats"]["rejoins"] > 0


@pytest.mark.parametrize("progress", PROGRESS)
def test_interface_down(breakable: Guest, progress: str) -> None:
    """All ranks name one whose device's network interface goes down."""
    results = suffer(breakable, "shut", progress, for_s=0.03, spare=True)
    check_errors(results)
    assert all(result["spare"] for result in results.values())
