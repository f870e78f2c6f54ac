# SPDX-License-Identifier: BSD-3-Clause
"""The Python module offers exactly the C API that the headers declare."""

from __future__ import annotations

import importlib
import re

from support import ROOT

HEADERS = sorted((ROOT / "ffi/include/mpimcast").glob("*.h"))


def declared(pattern: str) -> set[str]:
    """Return all matches of a pattern's group in the headers, without comments."""
    found: set[str] = set()
    for header in HEADERS:
        code = re.sub(r"/\*.*?\*/", " ", header.read_text(), flags=re.DOTALL)
        found.update(re.findall(pattern, code, flags=re.MULTILINE))
    return found


def test_functions_and_constants() -> None:
    """The module has each function and constant of the headers, and no other."""
    functions = declared(r"\b(mmc_\w+)\s*\(")
    constants = declared(r"\b(MMC_\w+)\s*=\s*\d") | declared(r"^#define (MMC_\w+)\s+\d")
    core = importlib.import_module("mpimcast._core")
    assert functions | constants == set(dir(core.lib))


def test_structs() -> None:
    """The module knows every struct of the headers, and the size of defined structs.

    The compiler checks that the sizes agree when the module is built, and cffi checks
    it when a struct is first used.
    """
    core = importlib.import_module("mpimcast._core")
    for struct in declared(r"\bstruct (mmc_\w+)"):
        assert core.ffi.typeof(f"struct {struct}")
    complete = declared(r"^struct (mmc_\w+) \{")
    assert complete
    for struct in complete:
        assert core.ffi.sizeof(f"struct {struct}") > 0
