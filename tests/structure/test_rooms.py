# SPDX-License-Identifier: BSD-3-Clause
"""The rooms of the Python package: who may import whom, and what each one shows."""

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

# What each part may import, from the bottom up. A part is a room or a module of the
# package; `_native.core` is one because the settings ask it whether FAULT is valid.
ROOMS = {
    "errors": set(),
    "explanation": set(),
    "requests": set(),
    "_support": set(),
    "_native.core": {"errors"},
    "_settings": {"errors", "_support", "_native.core"},
    "_native": {"errors", "_support", "_native.core", "_settings"},
    "_mpi": {"errors", "_support", "_settings"},
}
ROOMS["memory"] = {"_native"}
ROOMS["_session"] = set(ROOMS) - {"memory"}
ROOMS["comm"] = {"_session", "_mpi"}
ROOMS["cli"] = set(ROOMS)
ROOMS["__main__"] = {"cli", "_mpi", "_support"}
ROOMS["__init__"] = {"errors", "explanation", "requests", "memory", "comm"}

# Modules outside the package, each with the only parts that may import it.
OUTSIDE = {
    "mpi4py": {"requests", "_mpi", "_session", "comm", "cli"},
    "mpimcast._core": {"_native", "_native.core", "cli"},
    "rich": {"cli"},
}

# By module, the modules of the package that it imports.
Imports = dict[str, set[str]]


@cache
def modules() -> dict[str, Path]:
    """Return the files of the package's modules, by names without the package's."""
    return {
        ".".join(path.relative_to(PACKAGE).with_suffix("").parts): path
        for path in sorted(PACKAGE.rglob("*.py"))
    }


def part(module: str) -> str:
    """Return the part of the package that a module belongs to."""
    return module if module in ROOMS else module.split(".", maxsplit=1)[0]


def imported(path: Path) -> Iterator[str]:
    """Yield all that a file imports, in functions and for type checkers, too.

    A name taken from a module is yielded as if it were a module in it.
    """
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def home(name: str) -> str | None:
    """Return the module of the package that a full name stands for or is taken from."""
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
    """Return what each module imports of the package."""
    return {
        module: {found for name in imported(path) if (found := home(name))} - {module}
        for module, path in modules().items()
    }


def test_directions(imports: Imports) -> None:
    """A module imports only what its part may import."""
    wrong = [
        f"{module} imports {other}"
        for module, others in imports.items()
        for other in others
        if part(other) not in {part(module), *ROOMS[part(module)]}
    ]
    assert len(imports) > 80
    assert not wrong, "\n".join(wrong)


def test_the_table_has_no_circle() -> None:
    """The parts themselves are in an order: none is above and below another."""
    TopologicalSorter(ROOMS).prepare()
    assert {part(module) for module in modules()} == set(ROOMS)


def test_no_circle(imports: Imports) -> None:
    """No module needs itself through others, wherever and for whatever it imports."""
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        pytest.fail(f"a circle: {' -> '.join(error.args[1])}")


def test_outside() -> None:
    """MPI, the C module and the terminal are known only where they belong."""
    wrong = [
        f"{module} imports {name}"
        for module, path in modules().items()
        for name in imported(path)
        for outside, parts in OUTSIDE.items()
        if f"{name}.".startswith(f"{outside}.") and part(module) not in parts
    ]
    assert not wrong, "\n".join(wrong)


def test_rooms_show_nothing() -> None:
    """A room itself has no names, so that importing one module does not load others."""
    rooms = [module for module in modules() if module.endswith(".__init__")]
    assert len(rooms) > 10
    for room in rooms:
        body = ast.parse(modules()[room].read_text()).body
        assert len(body) == 1, room
        assert isinstance(body[0], ast.Expr), room


def test_public_names() -> None:
    """Each public name lives in a public module, whose every name is public."""
    public = {name for name in ROOMS if not name.startswith("_")} - {"cli"}
    names = {
        name
        for module in public
        for name, value in vars(import_module(f"mpimcast.{module}")).items()
        if not name.startswith("_")
        and getattr(value, "__module__", "") == f"mpimcast.{module}"
    }
    assert names == set(mpimcast.__all__) - {"__version__"}


def test_sizes() -> None:
    """A file has at most 400 lines, a function 50 lines and six parameters."""
    wrong = []
    for module, path in modules().items():
        text = path.read_text()
        if len(text.splitlines()) > 400:
            wrong.append(f"{module} is long")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef):
                nlines = (node.end_lineno or 0) - node.lineno + 1
                names = {each.arg for each in node.args.args + node.args.kwonlyargs}
                if nlines > 50 or len(names - {"self", "cls"}) > 6:
                    wrong.append(f"{module}: {node.name} is long")
    assert not wrong, "\n".join(wrong)
