# SPDX-License-Identifier: BSD-3-Clause
"""If a mishap hits one rank, all ranks get right bytes, or errors that name it."""

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
OP = 5  # the operation before or during which something goes wrong
BLOCK_BYTES = 512 << 10
TIMEOUT_S = 1.5

# How long a busy machine may take for work that needs only a moment.
BUSY_S = 5

# For tests that stop ranks: a TIMEOUT in which a job can open on a busy machine, and a
# stop that lasts longer than two TIMEOUTs.
PATIENCE_S = 4
STOP_S = 10

# How long a port of the switch is down.
FLAP_S = 4

# Both ways to wait for completions; polling is tested only with --long.
PROGRESS = ["event", pytest.param("poll", marks=pytest.mark.long)]

# Matches the error of a rank that got no answer from the victim, or whose connection to
# the victim broke.
SILENT = (
    rf"rank {VICTIM} has not answered within TIMEOUT|"
    rf"rxe\d: queue pair 0x[0-9a-f]+ to rank {VICTIM}: "
    "transport retry counter exceeded"
)


@pytest.fixture
def breakable(linux: Path) -> Iterator[Guest]:
    """Yield a guest for one test alone, which may break its network for good."""
    with Guest(linux, devices=NRANKS) as guest:
        yield guest


def run_with_mishap(
    guest: Guest, what: str, progress: str = "auto", **options: Any
) -> Results:
    """Run a job in which the victim has a mishap; check all bytes; return the results.

    Parameters
    ----------
    guest
        The guest to run in.
    what
        The mishap; see gather.Mishap.
    progress
        The setting PROGRESS.
    **options
        `for_s`, the mishap's attribute; `timeout_s`, the setting TIMEOUT; all others as
        in ranks.gather.
    """
    mishap = {"what": what, "rank": VICTIM, "op": OP}
    mishap["for_s"] = options.pop("for_s", 0)
    return gather(
        guest,
        NRANKS,
        failing=True,
        sizes=[BLOCK_BYTES],
        repeat=40,
        open_first=True,
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
    ops = {error["op"] for error in errors.values()}
    # Some ranks may have completed an operation that the others could not complete.
    assert max(ops) - min(ops) <= 1, errors
    for rank, result in results.items():
        if rank != VICTIM:
            assert errors[rank]["seconds"] < TIMEOUT_S * 1.25 + BUSY_S
            # An operation on a failed stream waits for no rank.
            assert result["poisoned_seconds"] < TIMEOUT_S


@pytest.mark.parametrize(
    ("for_s", "progress"),
    [
        pytest.param(0, "poll", id="before-poll", marks=pytest.mark.long),
        pytest.param(0, "event", id="before-event", marks=pytest.mark.long),
        pytest.param(0.03, "event", id="during-event"),
        pytest.param(0.03, "poll", id="during-poll", marks=pytest.mark.long),
    ],
)
def test_killed(guest: Guest, for_s: float, progress: str) -> None:
    """If a rank is killed before an operation or during it, the others name it."""
    results = run_with_mishap(
        guest,
        "kill",
        progress,
        for_s=for_s,
        use_spare=True,
        outlive=True,
        without=[VICTIM],
    )
    check_errors(results)
    texts = [result["errors"][0]["text"] for result in results.values()]
    assert any(re.search(SILENT, text) for text in texts), texts
    assert all(result["spare_worked"] for result in results.values())


@pytest.mark.parametrize("progress", PROGRESS)
def test_stopped(guest: Guest, progress: str) -> None:
    """Ranks wait for a rank that is stopped for longer than TIMEOUT.

    Its device, which still answers, shows that its host is alive.
    """
    results = run_with_mishap(
        guest, "stop", progress, for_s=STOP_S, timeout_s=PATIENCE_S
    )
    assert not any(result["errors"] for result in results.values()), results
    longest_s = max(
        seconds
        for rank, result in results.items()
        if rank != VICTIM
        for seconds in result["seconds"]
    )
    assert longest_s > 1.5 * PATIENCE_S


@pytest.mark.long
def test_killed_while_stopped(guest: Guest) -> None:
    """The others wait for a stopped rank, and name it as soon as it is killed."""
    results = run_with_mishap(
        guest,
        "stop_kill",
        for_s=STOP_S,
        timeout_s=PATIENCE_S,
        use_spare=True,
        outlive=True,
        without=[VICTIM],
    )
    errors = [result["errors"][0] for result in results.values()]
    assert all(error["ranks"] == [VICTIM] for error in errors), errors
    # The longest time counts: a rank that had not entered when the others failed did
    # not wait.
    longest_s = max(error["seconds"] for error in errors)
    assert 1.5 * PATIENCE_S < longest_s < STOP_S + PATIENCE_S + BUSY_S, errors
    assert all(result["spare_worked"] for result in results.values())


@pytest.mark.long
def test_computing_without_a_thread(guest: Guest) -> None:
    """With PROGRESS_THREAD=off a rank may compute for longer than TIMEOUT."""
    results = gather(
        guest,
        NRANKS,
        sizes=[BLOCK_BYTES],
        repeat=OP + 3,
        settings={"timeout": PATIENCE_S, "progress_thread": "off"},
        mishaps=[
            {"what": "late", "rank": VICTIM, "op": OP, "for_s": STOP_S},
            {"what": "late", "rank": 0, "op": OP + 1, "for_s": STOP_S},
        ],
    )
    longest_s = max(max(result["seconds"]) for result in results.values())
    assert longest_s > 1.5 * PATIENCE_S


@pytest.mark.long
def test_unplugged(guest: Guest) -> None:
    """All ranks name a rank whose device is unplugged.

    When it is plugged in again, a new communicator of all ranks works.
    """
    results = run_with_mishap(guest, "unplug", for_s=FLAP_S, use_another=True)
    assert all(result["another_worked"] for result in results.values())
    check_errors(results)


@pytest.mark.timeout(150, func_only=True)
@pytest.mark.parametrize("progress", PROGRESS)
def test_unplugged_briefly(guest: Guest, progress: str) -> None:
    """No rank fails if a device is unplugged for less than half a TIMEOUT."""
    results = run_with_mishap(
        guest, "unplug", progress, for_s=FLAP_S, timeout_s=2.5 * FLAP_S
    )
    assert not any(result["errors"] for result in results.values()), results
    # The device was unplugged during the operations, and connections were made anew.
    assert max(max(result["seconds"]) for result in results.values()) > FLAP_S / 2
    assert results[VICTIM]["stats"]["reconnects"] > 0
    assert results[VICTIM]["stats"]["rejoins"] > 0


@pytest.mark.parametrize("progress", PROGRESS)
def test_interface_down(breakable: Guest, progress: str) -> None:
    """If the network interface below a rank's device goes down, all ranks name it."""
    results = run_with_mishap(breakable, "shut", progress, for_s=0.03, use_spare=True)
    check_errors(results)
    assert all(result["spare_worked"] for result in results.values())
