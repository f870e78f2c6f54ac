# SPDX-License-Identifier: BSD-3-Clause
"""The rooms of bench/ import only rooms below them, and its modules form no circle."""

from __future__ import annotations

import ast
from graphlib import TopologicalSorter

from support import ROOT

# For each room, a folder of bench/, the rooms from which it may import. The commands,
# which are the modules in bench/ itself, may import from all rooms.
MAY_IMPORT: dict[str, set[str]] = {
    "testbed": set(),
    "guest": set(),
    "page": set(),
    "jobs": {"testbed", "guest"},
    "cells": {"testbed", "jobs", "page"},
    "scaling": {"page"},
    "study": {"page"},
}
COMMANDS = ""


def modules() -> dict[str, set[str]]:
    """Return the modules of bench/, each with the modules of bench/ that it imports."""
    texts = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts): path.read_text()
        for path in sorted((ROOT / "bench").rglob("*.py"))
    }
    return {name: set(texts) & imported(text) for name, text in texts.items()}


def imported(text: str) -> set[str]:
    """Return the modules that a Python file may import, and names taken from them.

    For ``from a import b`` these are ``a`` and ``a.b``, since ``b`` may be a module.
    """
    names: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, "no relative imports"
            names.add(f"{node.module}")
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return names


def room(module: str) -> str:
    """Return the room of a module of bench/."""
    _, *rooms, _ = module.split(".")
    return ".".join(rooms)


def test_rooms() -> None:
    """Every room is listed, and imports only from itself and the rooms it may use."""
    graph = modules()
    assert {room(module) for module in graph} == {*MAY_IMPORT, COMMANDS}
    wrong = [
        f"{module} imports {other}"
        for module, others in graph.items()
        for other in sorted(others)
        if room(module) != COMMANDS
        and room(other) not in {*MAY_IMPORT[room(module)], room(module)}
    ]
    assert not wrong, "\n".join(wrong)


def test_no_circles() -> None:
    """Neither rooms nor modules import each other in a circle."""
    TopologicalSorter(MAY_IMPORT).prepare()
    TopologicalSorter(modules()).prepare()
