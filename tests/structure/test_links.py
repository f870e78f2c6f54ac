# SPDX-License-Identifier: BSD-3-Clause
"""Symbols between object files: rooms depend one way, and no files form a circle."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from graphlib import CycleError, TopologicalSorter
from itertools import chain
from pathlib import Path

import pytest
from support import ROOT, absent, require_tool, run

FFI = ROOT / "ffi"
FLAGS = ("-std=c11", "-O0", "-D_GNU_SOURCE", f"-I{FFI}", f"-I{FFI}/include")

# From the top down: a room may need only those below it.
ROOMS = ("sim", "engine", "drivers", "core", "support")

# By file, the files that it needs, all without suffixes.
Needs = dict[str, set[str]]


def compile_folder(folder: Path, out: Path) -> list[tuple[str, Path]]:
    """Compile a folder's files; return their names under ffi/, and the objects."""
    sources = sorted(folder.glob("*.c"))
    if folder.name == "verbs":
        sources = [each for each in sources if each.name != "absent.c"]
    place = out / folder.relative_to(FFI)
    place.mkdir(parents=True)
    gcc = require_tool("gcc")
    verbs_headers = "/usr/include/rdma/rdma_cma.h"
    if folder.name == "verbs" and not Path(verbs_headers).exists():
        absent(f"{verbs_headers} is needed")
    run([gcc, *FLAGS, "-c", *sources], limit_s=120, cwd=place)
    return [
        (each.relative_to(FFI).with_suffix("").as_posix(), place / f"{each.stem}.o")
        for each in sources
    ]


@pytest.fixture(scope="module")
def needs(tmp_path_factory: pytest.TempPathFactory) -> Needs:
    """Return the files that each file needs."""
    out = tmp_path_factory.mktemp("links")
    folders = sorted(
        {path.parent for room in ROOMS for path in (FFI / room).rglob("*.c")}
    )
    with ThreadPoolExecutor(2) as pool:
        compiled = pool.map(lambda folder: compile_folder(folder, out), folders)
        objects = dict(chain.from_iterable(compiled))
    nm = require_tool("nm")
    defined, undefined = {}, {}
    for name, path in objects.items():
        lines = run([nm, "-P", path], limit_s=60).splitlines()
        symbols = [line.split()[:2] for line in lines]
        undefined[name] = {symbol for symbol, kind in symbols if kind == "U"}
        defined.update({symbol: name for symbol, kind in symbols if kind in "TDBRC"})
    return {
        name: {defined[symbol] for symbol in wanted & defined.keys()} - {name}
        for name, wanted in undefined.items()
    }


def test_rooms(needs: Needs) -> None:
    """No file needs a file of a room above its own."""
    rank = {room: number for number, room in enumerate(ROOMS)}
    wrong = [
        f"{name} needs {other}"
        for name, others in needs.items()
        for other in others
        if rank[other.split("/")[0]] < rank[name.split("/")[0]]
    ]
    assert len(needs) > 100
    assert not wrong, "\n".join(wrong)


def test_drivers(needs: Needs) -> None:
    """Of the core, drivers need nothing but the header of a datagram."""
    wanted = {
        other
        for name, others in needs.items()
        for other in others
        if name.startswith("drivers/") and other.startswith("core/")
    }
    assert wanted <= {"core/wire/header"}


def test_circles(needs: Needs) -> None:
    """No file needs itself through other files."""
    try:
        TopologicalSorter(needs).prepare()
    except CycleError as error:
        pytest.fail(f"a circle: {' -> '.join(error.args[1])}")
