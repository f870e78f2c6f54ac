# SPDX-License-Identifier: BSD-3-Clause
"""The rooms of the Python package: who may import whom, and which names are public."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from importlib import import_module
from pathlib import Path

import pytest
from support import ROOT

import mpimcast

PACKAGE = ROOT / "mpimcast"

# For each part of the package, the parts that it may import, from the bottom up. A part
# is a room, or a module that is in no room. The module `core` of `_native` is a part by
# itself, since the settings ask it whether FAULT is valid.
ROOMS = {
    "errors": set(),
    "explanation": set(),
    "partial": {"_support"},
    "requests": {"partial", "_support"},
    "stranger": set(),
    "_support": set(),
    "_native.core": {"errors"},
    "_settings": {"errors", "_support", "_native.core"},
    "_native": {"errors", "stranger", "_support", "_native.core", "_settings"},
    "_device": {"errors"},
    "_mpi": {"errors", "_support", "_settings", "_device"},
    "_launch": {"errors"},
}
ROOMS["_session"] = set(ROOMS)
ROOMS["comm"] = {"_session", "_mpi"}
ROOMS["sdr"] = {"_session", "_settings", "errors", "requests"}
ROOMS["memory"] = {"_native", "_support", "comm"}
ROOMS["torch"] = set(ROOMS)
ROOMS["_fabric"] = set()
ROOMS["_peers"] = {"_fabric"}
ROOMS["cli"] = set(ROOMS) - {"torch"}
ROOMS["__main__"] = {"cli", "_mpi", "_support"}
ROOMS["__init__"] = {"errors", "explanation", "partial", "requests", "stranger"}
ROOMS["__init__"] |= {"memory", "comm"}

# Modules outside the package, each with the only parts that may import it.
OUTSIDE = {
    "mpi4py": {"requests", "_mpi", "_session", "comm", "sdr", "cli", "torch"},
    "mpimcast._core": {"_native", "_native.core", "cli"},
    "mpimcast._small": {"_device", "_mpi", "_native", "_session"},
    "matplotlib": {"cli"},
    "networkx": {"_fabric"},
    "rich": {"cli"},
    "torch": {"torch"},
}

# What users import by itself, since it needs a package that few have.
EXTRAS = {"torch"}

# For each module, the modules of the package that it imports.
Imports = dict[str, set[str]]


@cache
def modules() -> dict[str, Path]:
    """Return the files of the package's modules by name, without "mpimcast."."""
    return {
        ".".join(path.relative_to(PACKAGE).with_suffix("").parts): path
        for path in sorted(PACKAGE.rglob("*.py"))
    }


def part(module: str) -> str:
    """Return the part of the package that a module belongs to."""
    return module if module in ROOMS else module.split(".", maxsplit=1)[0]


def imported(path: Path) -> Iterator[str]:
    """Yield all names that a file imports, even in functions or for type checkers only.

    For ``from a import b`` that is ``a.b``.
    """
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def home(name: str) -> str | None:
    """Return the module that a full name stands for, or that the name is taken from.

    Return None if the package has no such module.
    """
    words = name.split(".")
    if words[0] != "mpimcast" or name == "mpimcast.__version__":
        return None
    for end in (len(words), len(words) - 1):
        for last in ((), ("__init__",)):
            module = ".".join((*words[1:end], *last))
            if module in modules():
                return module
    return None


@pytest.fixture(scope="module")
def imports() -> Imports:
    """Return for each module the other modules of the package that it imports."""
    return {
        module: {found for name in imported(path) if (found := home(name))} - {module}
        for module, path in modules().items()
    }


def test_directions(imports: Imports) -> None:
    """A module imports only the parts that its own part may import."""
    wrong = [
        f"{module} imports {other}"
        for module, others in imports.items()
        for other in others
        if part(other) not in {part(module), *ROOMS[part(module)]}
    ]
    assert len(imports) > 80
    assert not wrong, "\n".join(wrong)


def test_the_table_has_no_circle() -> None:
    """The table lists all parts; none of them may import itself through others."""
    TopologicalSorter(ROOMS).prepare()
    assert {part(module) for module in modules()} == set(ROOMS)


def test_no_circle(imports: Imports) -> None:
    """No module imports itself through others, even in a function or for types."""
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        pytest.fail(f"a circle: {' -> '.join(error.args[1])}")


def test_outside() -> None:
    """Only the listed parts import mpi4py, the C modules and rich."""
    wrong = [
        f"{module} imports {name}"
        for module, path in modules().items()
        for name in imported(path)
        for outside, parts in OUTSIDE.items()
        if f"{name}.".startswith(f"{outside}.") and part(module) not in parts
    ]
    assert not wrong, "\n".join(wrong)


def test_rooms_are_empty() -> None:
    """A room's __init__.py has only a docstring, so importing it loads no module."""
    extras = {f"{extra}.__init__" for extra in EXTRAS}
    rooms = [module for module in modules() if module.endswith(".__init__")]
    assert len(rooms) > 10
    assert extras < set(rooms)
    for room in set(rooms) - extras:
        body = ast.parse(modules()[room].read_text()).body
        assert len(body) == 1, room
        assert isinstance(body[0], ast.Expr), room


def test_public_names() -> None:
    """Public modules define all public names, and no others."""
    apart = {"cli", "sdr", *EXTRAS}  # their names are not the package's own
    public = {name for name in ROOMS if not name.startswith("_")} - apart
    names = {
        name
        for module in public
        for name, value in vars(import_module(f"mpimcast.{module}")).items()
        if not name.startswith("_")
        and getattr(value, "__module__", "") == f"mpimcast.{module}"
    }
    assert names == set(mpimcast.__all__) - {"__version__"}
