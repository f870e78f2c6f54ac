# SPDX-License-Identifier: BSD-3-Clause
"""The conclusions from the facts that ranks exchange before they open a transport."""

from __future__ import annotations

from typing import Any

import pytest

from mpimcast._session.introduction import (
    is_crowded,
    machine_key,
    processors_of,
)


def fact(machine: str, *processors: int) -> dict[str, Any]:
    """Return the facts of a rank that may run on these processors of a machine."""
    mask = sum(1 << number for number in processors)
    return {"machine": machine, "processors": f"{mask:x}"}


@pytest.mark.parametrize(
    ("facts", "crowded"),
    [
        ([fact("a", 0), fact("b", 0)], False),
        ([fact("a", 0, 1), fact("a", 0, 1)], False),
        ([fact("a", 0), fact("a", 1), fact("a", 300)], False),
        ([fact("a", 0), fact("a", 0)], True),
        ([fact("a", *range(64))] * 64 + [fact("b", 0), fact("b", 0)], True),
    ],
    ids=["one each", "enough", "bound apart", "bound alike", "one machine of two"],
)
def test_crowded(facts: list[dict[str, Any]], crowded: bool) -> None:
    """Ranks are crowded if on any machine they have fewer processors than ranks."""
    assert is_crowded(facts) is crowded


@pytest.mark.parametrize(
    ("facts", "nprocessors"),
    [
        ([fact("a", 5)], 1),
        ([fact("a", 0, 1, 2, 3), fact("b", 0, 1, 2, 3)], 4),
        ([fact("a", 0, 1, 2, 3), fact("a", 0, 1, 2, 3)], 2),
        ([fact("a", 0, 1), fact("a", 2, 3)], 2),
        ([fact("a", 0), fact("a", 0)], 0),
        ([fact("a", 0, 1, 2, 3), fact("a", 3), fact("a", 4)], 2),
    ],
    ids=["one", "two machines", "all alike", "bound apart", "crowded", "in part"],
)
def test_processors(facts: list[dict[str, Any]], nprocessors: int) -> None:
    """Processors that several ranks may use count for each of them in equal parts."""
    assert processors_of(facts, 0) == nprocessors


def test_machine_key() -> None:
    """A machine's key is the same at each call, and has eight characters."""
    assert machine_key() == machine_key()
    assert len(machine_key()) == 8
