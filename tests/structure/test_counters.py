# SPDX-License-Identifier: BSD-3-Clause
"""What chunks and operations cost, counted, is no more than it was."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest
from support import absent, require_tool

from bench import counters

BASELINE = {"a": {"x": 100.0, "none": 0.0}}


def compare(found: dict[str, dict[str, float]]) -> None:
    """Fail with what has risen; if it is meant to, the baseline is to be rewritten."""
    lines = counters.rises(counters.read_baseline(), found)
    assert not lines, "\n".join([*lines, "if that is meant: make baseline"])


@pytest.mark.parametrize("way", counters.COUNTED)
def test_instructions(way: str, tmp_path: Path) -> None:
    """A chunk costs no more instructions than it did."""
    if platform.machine() != "x86_64":
        absent("instructions are counted on x86-64")
    for tool in counters.TOOLS:
        require_tool(tool)
    found = counters.instructions(way, tmp_path)
    compare({"instructions per chunk": {way: found}})


def test_operations(tmp_path: Path) -> None:
    """Nor does an operation more system calls, copies, allocations, datagrams."""
    require_tool("gcc")
    compare(counters.operations(tmp_path))


def test_the_baseline_is_whole() -> None:
    """It has all that is counted, and nothing else."""
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
    """More than 5 % above is a rise, of nothing anything is, and what is new too."""
    assert bool(counters.rises(BASELINE, {"a": {name: value}})) == rises
