# SPDX-License-Identifier: BSD-3-Clause
"""Each C module of seven parts of ffi/ has a test that bears its name."""

from __future__ import annotations

from collections import Counter

from support import ROOT

FFI = ROOT / "ffi"
PARTS = ("core", "code", "support", "engine", "node", "offload", "server")
TESTS = {path.name for path in (ROOT / "tests/c").glob("*_test.c")}


# These folders are no rooms of their own: what lies there belongs to the folder above.
WITHIN = ("api",)


def nouns() -> set[tuple[str, str]]:
    """Return the room and the name of all C files, and of headers with functions.

    The public calls of a module and what runs below them are one noun.
    """
    found = set()
    for part in PARTS:
        for path in (FFI / part).rglob("*.[ch]"):
            if path.suffix == ".c" or "static inline" in path.read_text():
                room = path.parent.parent if path.parent.name in WITHIN else path.parent
                found.add((room.name, path.stem))
    return found


def test_each_module_has_its_test() -> None:
    """The test is MODULE_test.c, or ROOM_MODULE_test.c if modules share a name."""
    found = nouns()
    count = Counter(name for _, name in found)
    without_test = [
        f"{room}/{name}"
        for room, name in sorted(found)
        if f"{room}_{name}_test.c" not in TESTS
        and (count[name] > 1 or f"{name}_test.c" not in TESTS)
    ]
    assert len(found) > 90
    assert not without_test, "\n".join(without_test)
