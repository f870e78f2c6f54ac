# SPDX-License-Identifier: BSD-3-Clause
"""House rules: which parts may include which, and how long functions and files are."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from support import ROOT

FOLDERS = ("mpimcast", "ffi", "tests", "bench", "slurm")

# By part of ffi/, what it may include; HERE stands for the file's own folder.
FREESTANDING = r"stdint\.h|stddef\.h|stdbool\.h"
SYSTEM = r"[a-z0-9_]+\.h|(sys|netinet|netpacket|net|arpa|linux)/[a-z0-9_]+\.h"
# The headers of support/ that are as freestanding as the core.
PURE = r"support/(assert|bits|memory|prng|states|time|timer)\.h"
VERBS = r"infiniband/verbs\.h|rdma/rdma_cma\.h"
MAY_INCLUDE = {
    "include": rf"{FREESTANDING}|mpimcast/.*",
    "support": rf"{SYSTEM}|support/.*|mpimcast/.*",
    "core": rf"{FREESTANDING}|{PURE}|core/.*|mpimcast/errors\.h",
    # Drivers see datagrams: of the core they know the header, and no chunks.
    "drivers": (
        rf"{SYSTEM}|{VERBS}|support/.*|drivers/(driver|placement|predictor)\.h|HERE/.*|"
        r"core/types\.h|core/wire/header\.h|mpimcast/.*"
    ),
    "engine": rf"{SYSTEM}|support/.*|engine/.*|drivers/.*|core/.*|mpimcast/.*",
    "sim": rf"{SYSTEM}|support/.*|sim/.*|engine/.*|drivers/.*|core/.*|mpimcast/.*",
}
INCLUDE = re.compile(r'^\s*#\s*include\s+[<"]([^>"]+)[>"]', re.MULTILINE)

FUNCTION_LINES_MAX = 70
FILE_LINES_MAX = 500


def files(*suffixes: str) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of every source file with one of the suffixes."""
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in suffixes:
                yield path.relative_to(ROOT).as_posix(), path.read_text()


def imports(module: str) -> Iterator[str]:
    """Yield each module that a Python file imports, with the name taken from it."""
    for node in ast.walk(ast.parse(module)):
        if isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def functions(source: str) -> Iterator[tuple[int, int]]:
    """Yield the lines on which a C file's function bodies begin and end."""
    begin = 0
    for number, line in enumerate(source.splitlines(), start=1):
        if line == "{":
            begin = number
        elif line == "}":
            yield begin, number


def test_includes() -> None:
    """Dependencies point one way: sim, engine, drivers, core, support."""
    wrong = []
    for name, text in files(".c", ".h"):
        if not name.startswith("ffi/"):
            continue
        _, part, *_ = Path(name).parts
        here = Path(name).parent.relative_to("ffi").as_posix()
        allowed = MAY_INCLUDE[part].replace("HERE", here)
        wrong += [
            f"{name} includes {included}"
            for included in INCLUDE.findall(text)
            if not re.fullmatch(allowed, included)
        ]
    assert not wrong, "\n".join(wrong)


def test_imports() -> None:
    """Few modules of the package import the C module."""
    users = {
        name
        for name, text in files(".py")
        if any("_core" in imported.split(".") for imported in imports(text))
    }
    assert users == {
        *(
            f"mpimcast/_native/{name}.py"
            for name in (
                *("core", "engine", "endpoint", "stream"),
                *("operation", "failure", "devices"),
            )
        ),
        "mpimcast/cli/sim/simulator.py",
    }


def test_files() -> None:
    """A file has at most 500 lines, and names its licence in the first two."""
    wrong = []
    for name, text in files(".c", ".h", ".py", ".pyi"):
        lines = text.splitlines()
        if len(lines) > FILE_LINES_MAX:
            wrong.append(f"{name} has {len(lines)} lines")
        if "SPDX-License-Identifier: BSD-3-Clause" not in "".join(lines[:2]):
            wrong.append(f"{name} names no licence")
    assert not wrong, "\n".join(wrong)


def test_functions() -> None:
    """A C function has at most 70 lines."""
    lengths = {
        f"{name}:{begin}": end - begin + 1
        for name, text in files(".c", ".h")
        for begin, end in functions(text)
    }
    assert len(lengths) > 100, "bodies begin and end in column 0"
    wrong = [
        f"{where}: {n} lines" for where, n in lengths.items() if n > FUNCTION_LINES_MAX
    ]
    assert not wrong, "\n".join(wrong)
