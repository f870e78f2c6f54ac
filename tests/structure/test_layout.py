# SPDX-License-Identifier: BSD-3-Clause
"""Rules for sources: which parts may include which, and the size of files."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from support import ROOT

FOLDERS = ("mpimcast", "ffi", "tests", "bench", "slurm")

FREESTANDING = r"stdint\.h|stddef\.h|stdbool\.h"
SYSTEM = r"[a-z0-9_]+\.h|(sys|netinet|netpacket|net|arpa|linux)/[a-z0-9_]+\.h"
# The headers of support/ that are as freestanding as the core.
PURE = r"support/(assert|bits|memory|prng|states|time|timer)\.h"
VERBS = r"infiniband/verbs\.h|rdma/rdma_cma\.h"
# For each part of ffi/, a regular expression for the headers that it may include. In it
# HERE stands for the including file's own folder.
MAY_INCLUDE = {
    "include": rf"{FREESTANDING}|mpimcast/.*",
    "support": rf"{SYSTEM}|support/.*|mpimcast/.*",
    "code": rf"{SYSTEM}|support/.*|code/.*|mpimcast/(code|errors)\.h",
    "core": rf"{FREESTANDING}|{PURE}|core/.*|mpimcast/errors\.h",
    # Drivers know one part of the core, the header of a datagram, but not chunks.
    "drivers": (
        rf"{SYSTEM}|{VERBS}|support/.*|drivers/(driver|placement|predictor|wrapper)\.h|HERE/.*|"
        r"offload/.*|"
        r"core/types\.h|core/wire/header\.h|mpimcast/.*"
    ),
    "engine": rf"{SYSTEM}|support/.*|code/.*|engine/.*|drivers/.*|core/.*|mpimcast/.*",
    "firmware": (
        rf"{FREESTANDING}|std(arg|io|lib|noreturn)\.h|string\.h|support/.*|firmware/.*|"
        r"engine/.*|drivers/(driver|predictor|protect/secret)\.h|server/server\.h|"
        r"code/codec\.h|core/plan/bitmap\.h|core/wire/header\.h|offload/ring\.h|mpimcast/.*"
    ),
    "node": rf"{SYSTEM}|support/.*|node/.*|mpimcast/.*",
    "offload": rf"{SYSTEM}|support/.*|offload/.*|mpimcast/.*",
    "proxy": (
        rf"{SYSTEM}|support/.*|proxy/.*|server/server\.h|offload/.*|engine/.*|"
        r"drivers/(remote/link|udp/linger)\.h|mpimcast/.*"
    ),
    # A server needs no operating system, and an engine by its public functions only.
    "server": (
        rf"{FREESTANDING}|{PURE}|std(io|lib)\.h|string\.h|support/error\.h|"
        r"server/.*|offload/ring\.h|mpimcast/.*"
    ),
    "python": rf"Python\.h|{SYSTEM}|python/.*|mpimcast/.*",
    "sim": rf"{SYSTEM}|support/.*|sim/.*|engine/.*|drivers/.*|core/.*|mpimcast/.*",
}
INCLUDE = re.compile(r'^\s*#\s*include\s+[<"]([^>"]+)[>"]', re.MULTILINE)

FILE_LINES_MAX = 400
FUNCTION_LINES_MAX = 50
PARAMETERS_MAX = 6

# Matches the definition of a C function: its name and its parameters.
DEFINED = re.compile(
    r"^[a-z_].*?\b(\w+)\(((?:[^;{}()]|\([^()]*\))*)\)\n\{", re.MULTILINE | re.DOTALL
)


def files(*suffixes: str) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of every source file with one of the suffixes."""
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in suffixes:
                yield path.relative_to(ROOT).as_posix(), path.read_text()


def imports(module: str) -> Iterator[str]:
    """Yield the modules that a Python file imports, or names taken from them.

    For ``from a import b`` that is ``a.b``.
    """
    for node in ast.walk(ast.parse(module)):
        if isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def c_functions(source: str) -> Iterator[tuple[str, int, int]]:
    """Yield the name and the numbers of lines and parameters of each C function."""
    for found in DEFINED.finditer(source):
        end = source.index("\n}\n", found.end())
        parameters = re.sub(r"\([^()]*\)", "", found[2]).split(",")
        yield found[1], source.count("\n", found.end(), end) + 2, len(parameters)


def python_functions(source: str) -> Iterator[tuple[str, int, int]]:
    """Yield the name and the numbers of lines and parameters of each function."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            arguments = node.args
            names = [
                each.arg
                for each in arguments.posonlyargs
                + arguments.args
                + arguments.kwonlyargs
            ]
            lines = (node.end_lineno or 0) - node.lineno + 1
            yield node.name, lines, len(set(names) - {"self", "cls"})


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


def test_imports_of_the_c_module() -> None:
    """Only the listed modules import the C module."""
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
                *("operation", "failure", "devices", "calls", "node", "landing"),
                *("express", "trace", "protection", "proxy", "runner", "codec"),
            )
        ),
        *(f"mpimcast/cli/sim/{name}.py" for name in ("scene", "simulator")),
    }


def test_files() -> None:
    """A file has at most 400 lines; one of the first two names the licence."""
    wrong = []
    for name, text in files(".c", ".h", ".py", ".pyi"):
        lines = text.splitlines()
        if len(lines) > FILE_LINES_MAX:
            wrong.append(f"{name} has {len(lines)} lines")
        if "SPDX-License-Identifier: BSD-3-Clause" not in "".join(lines[:2]):
            wrong.append(f"{name} names no licence")
    assert not wrong, "\n".join(wrong)


def test_functions() -> None:
    """A function has at most 50 lines and six parameters."""
    found = {
        (f"{name}: {function}", lines, parameters)
        for name, text in files(".c", ".h", ".py")
        for function, lines, parameters in (
            python_functions(text) if name.endswith(".py") else c_functions(text)
        )
    }
    assert len(found) > 3000, "DEFINED misses C functions, which end with } in column 0"
    wrong = [
        f"{where}: {lines} lines, {parameters} parameters"
        for where, lines, parameters in found
        if lines > FUNCTION_LINES_MAX or parameters > PARAMETERS_MAX
    ]
    assert not wrong, "\n".join(sorted(wrong))
