# SPDX-License-Identifier: BSD-3-Clause
"""Each module of the core and of support has a test that bears its name."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from support import ROOT

FFI = ROOT / "ffi"
PARTS = ("core", "support")
TESTS = {path.name for path in (ROOT / "tests/c").glob("*_test.c")}


def modules() -> list[Path]:
    """Return the C files, and the headers with code that belong to none of them."""
    sources = [path for part in PARTS for path in sorted((FFI / part).rglob("*.c"))]
    headers = [path for part in PARTS for path in sorted((FFI / part).rglob("*.h"))]
    return sources + [
        path
        for path in headers
        if "static inline" in path.read_text() and path.with_suffix(".c") not in sources
    ]


def test_each_module_has_its_test() -> None:
    """It is MODULE_test.c, or ROOM_MODULE_test.c where two modules share a name."""
    found = modules()
    count = Counter(path.stem for path in found)
    lacking = [
        path.relative_to(FFI).as_posix()
        for path in found
        if f"{path.parent.name}_{path.stem}_test.c" not in TESTS
        and (count[path.stem] > 1 or f"{path.stem}_test.c" not in TESTS)
    ]
    assert len(found) > 35
    assert not lacking, "\n".join(lacking)
