# SPDX-License-Identifier: BSD-3-Clause
"""The counted costs of chunks and operations are no higher than they were."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest
from support import absent, require_tool

from bench import counters

BASELINE = {"a": {"x": 100.0, "none": 0.0}}


def compare(found: dict[str, dict[str, float]]) -> None:
    """Fail if a cost has risen; an intended rise needs a new baseline."""
    lines = counters.rises(counters.read_baseline(), found)
    assert not lines, "\n".join([*lines, "if that is meant: make baseline"])


@pytest.mark.parametrize("way", counters.COUNTED)
def test_instructions(way: str, tmp_path: Path) -> None:
    """A chunk costs no more instructions than the baseline."""
    if platform.machine() != "x86_64":
        absent("instructions are counted on x86-64")
    for tool in counters.TOOLS:
        require_tool(tool)
    found = counters.instructions(way, tmp_path)
    compare({"instructions per chunk": {way: found}})


def test_operations(tmp_path: Path) -> None:
    """An operation has no more system calls, copies, allocations or datagrams."""
    require_tool("gcc")
    compare(counters.operations(tmp_path))


def test_the_baseline_is_whole() -> None:
    """The baseline has everything that is counted, and nothing else."""
    groups = {f"{name} {nbytes}" for name, nbytes in counters.OPERATIONS}
    baseline = counters.read_baseline()
    assert set(baseline) == groups | {"instructions per chunk"}
    assert set(baseline["instructions per chunk"]) == set(counters.COUNTED)


@pytest.mark.parametrize(
    ("name", "value", "rises"),
    [
        ("x", 100.0, False),
        ("x", 50.0, False),
        ("x", 104.9, False),
        ("x", 105.1, True),
        ("none", 0.0, False),
        ("none", 1.0, True),
        ("new", 1.0, True),
    ],
)
def test_rises(name: str, value: float, *, rises: bool) -> None:
    """A rise is more than 5 %, or anything above 0, or a cost without a baseline."""
    assert bool(counters.rises(BASELINE, {"a": {name: value}})) == rises
