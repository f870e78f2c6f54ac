# SPDX-License-Identifier: BSD-3-Clause
"""Ranks, devices and networks that fail: right bytes, or the same error for all, soon."""

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
PROGRESS = ["poll", "event"]


@pytest.fixture
def breakable(linux: Path) -> Iterator[Guest]:
    """Return a guest whose network may be lost."""
    with Guest(linux, devices=NRANKS) as guest:
        yield guest


def suffer(guest: Guest, progress: str = "auto", **options: Any) -> Results:
    """Let one rank have a mishap; return what all others saw, with right bytes."""
    without = options.pop("without", ())
    mishap = {"rank": VICTIM, "op": OP, **options}
    return gather(
        guest,
        NRANKS,
        failing=True,
        outlive=True,
        without=without,
        sizes=[BLOCK],
        repeat=10,
        spare=True,
        settings={"timeout": TIMEOUT_S, "progress": progress},
        mishaps=[mishap],
    )


def check_survivors(results: Results) -> None:
    """See that all ended alike: with the same error, in time, and went on without."""
    errors = {rank: result["errors"][0] for rank, result in results.items()}
    for error in errors.values():
        # Some may have all data of an operation that others could not end.
        assert error["op"] in (OP - 1, OP, OP + 1)
        assert error["ranks"] == [VICTIM], errors
        assert f"rank {VICTIM}" in error["text"]
        assert error["seconds"] < TIMEOUT_S * 1.25 + 1
    for result in results.values():
        assert result["poisoned_seconds"] < 0.1
        assert result["spare"]


@pytest.mark.parametrize("progress", PROGRESS)
@pytest.mark.parametrize(
    "after_s", [None, 0.01, 0.03], ids=["between", "early", "half"]
)
def test_killed(guest: Guest, after_s: float | None, progress: str) -> None:
    """By a signal before it begins, or gone while it sends its block."""
    mishap: dict[str, Any] = {"what": "kill"}
    if after_s is not None:
        mishap = {"what": "die", "for_s": after_s}
    check_survivors(suffer(guest, progress, without=[VICTIM], **mishap))
