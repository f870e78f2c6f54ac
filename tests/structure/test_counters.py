# SPDX-License-Identifier: BSD-3-Clause
"""The counted costs of chunks and operations do not exceed the baseline."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest
from support import require_tool, skip_or_fail

from bench import counters

BASELINE = {"group": {"hundred": 100.0, "nothing": 0.0}}


def compare(found: dict[str, dict[str, float]]) -> None:
    """Fail if a cost is more than 2 % above the baseline."""
    lines = counters.rises(counters.read_baseline(), found)
    advice = "if this rise is intended, run `make baseline` and commit its result"
    assert not lines, "\n".join([*lines, advice])


@pytest.mark.parametrize("part", counters.COUNTED)
def test_instructions(part: str, tmp_path: Path) -> None:
    """A chunk takes no more instructions than in the baseline."""
    if platform.machine() != "x86_64":
        skip_or_fail("the baseline's instructions are those of x86-64")
    for tool in counters.TOOLS:
        require_tool(tool)
    found = counters.instructions(part, tmp_path)
    compare({"instructions per chunk": {part: found}})


def test_operations(tmp_path: Path) -> None:
    """An operation takes no more calls, copies or datagrams than in the baseline."""
    require_tool("gcc")
    compare(counters.operations(tmp_path))


def test_the_baseline_is_whole() -> None:
    """The committed baseline has every counted cost, and nothing else."""
    groups = {f"{name} {nbytes}" for name, nbytes in counters.OPERATIONS}
    baseline = counters.read_baseline()
    assert set(baseline) == groups | {"instructions per chunk"}
    assert set(baseline["instructions per chunk"]) == set(counters.COUNTED)


@pytest.mark.parametrize(
    ("name", "value", "rises"),
    [
        ("hundred", 100.0, False),
        ("hundred", 50.0, False),
        ("hundred", 101.9, False),
        ("hundred", 102.1, True),
        ("nothing", 0.0, False),
        ("nothing", 1.0, True),
        ("unknown", 1.0, True),
    ],
)
def test_rises(name: str, value: float, *, rises: bool) -> None:
    """A cost has risen if it is more than 2 % above the baseline, or not in it."""
    assert bool(counters.rises(BASELINE, {"group": {name: value}})) == rises
