# SPDX-License-Identifier: BSD-3-Clause
"""C files need only files in rooms at or below their own, and form no circles.

The symbols of their objects prove it.
"""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from graphlib import CycleError, TopologicalSorter
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import pytest
from support import ROOT, require_tool, run, skip_or_fail

FFI = ROOT / "ffi"
FLAGS = ("-std=c11", "-O0", "-D_GNU_SOURCE", f"-I{FFI}", f"-I{FFI}/include")

# From the top down: a room may need only the rooms below it.
ROOMS = ("sim", "node", "engine", "drivers", "core", "code", "support")

# The engine's public calls that are defined outside engine/api. This call takes no
# lock, and the engine's own thread also calls it.
OUTSIDE_API = {"mmc_thread_unbind"}

# For each file, the files that it needs. Names are paths below ffi/ without suffixes.
Needs = dict[str, set[str]]


def compile_folder(folder: Path, out: Path) -> list[tuple[str, Path]]:
    """Compile a folder's files; return each file's name and its object's path."""
    sources = sorted(folder.glob("*.c"))
    if folder.name == "verbs":
        # This file replaces the others where rdma-core is missing.
        sources = [each for each in sources if each.name != "absent.c"]
    place = out / folder.relative_to(FFI)
    place.mkdir(parents=True)
    gcc = require_tool("gcc")
    verbs_headers = "/usr/include/rdma/rdma_cma.h"
    if folder.name == "verbs" and not Path(verbs_headers).exists():
        skip_or_fail(f"{verbs_headers} is missing: apt install librdmacm-dev")
    run([gcc, *FLAGS, "-c", *sources], limit_s=120, cwd=place)
    return [
        (each.relative_to(FFI).with_suffix("").as_posix(), place / f"{each.stem}.o")
        for each in sources
    ]


class Symbols(NamedTuple):
    """The symbols of all files.

    Attributes
    ----------
    defined : dict
        For each symbol, the file that defines it.
    undefined : dict
        For each file, the symbols that it uses without defining them.
    """

    defined: dict[str, str]
    undefined: dict[str, set[str]]


@pytest.fixture(scope="module")
def symbols(tmp_path_factory: pytest.TempPathFactory) -> Symbols:
    """Compile all files, and return their symbols."""
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
        found = [line.split()[:2] for line in lines]
        undefined[name] = {symbol for symbol, kind in found if kind == "U"}
        defined.update({symbol: name for symbol, kind in found if kind in "TDBRC"})
    return Symbols(defined, undefined)


@pytest.fixture(scope="module")
def needs(symbols: Symbols) -> Needs:
    """Return for each file the files that define its undefined symbols."""
    defined, undefined = symbols
    return {
        name: {defined[symbol] for symbol in wanted & defined.keys()} - {name}
        for name, wanted in undefined.items()
    }


def test_rooms(needs: Needs) -> None:
    """No file needs a file of a room above its own."""
    depth = {room: number for number, room in enumerate(ROOMS)}
    wrong = [
        f"{name} needs {other}"
        for name, others in needs.items()
        for other in others
        if depth[other.split("/")[0]] < depth[name.split("/")[0]]
    ]
    assert len(needs) > 100
    assert not wrong, "\n".join(wrong)


def test_drivers_and_the_core(needs: Needs) -> None:
    """Drivers need nothing of the core except the header of a datagram."""
    wanted = {
        other
        for name, others in needs.items()
        for other in others
        if name.startswith("drivers/") and other.startswith("core/")
    }
    assert wanted <= {"core/wire/header"}


def test_no_circles(needs: Needs) -> None:
    """No file needs itself through other files."""
    try:
        TopologicalSorter(needs).prepare()
    except CycleError as error:
        pytest.fail(f"a circle: {' -> '.join(error.args[1])}")


def test_public_calls(symbols: Symbols, needs: Needs) -> None:
    """The engine's public calls, which take the lock, are in engine/api.

    No file below engine/api needs them, since it would take the lock twice.
    """
    public = {
        call
        for header in (FFI / "include/mpimcast").glob("*.h")
        for call in re.findall(r"\b(mmc_\w+)\(", header.read_text())
    }
    places = {
        call: symbols.defined[call]
        for call in public & symbols.defined.keys()
        if symbols.defined[call].startswith("engine/")
    }
    assert len(places) > 30
    outside = {
        call for call, place in places.items() if not place.startswith("engine/api/")
    }
    assert outside == OUTSIDE_API
    wrong = [
        f"{name} needs {other}"
        for name, others in needs.items()
        for other in others
        if other.startswith("engine/api/")
        and not name.startswith(("engine/api/", "node/", "sim/"))
    ]
    assert not wrong, "\n".join(wrong)
