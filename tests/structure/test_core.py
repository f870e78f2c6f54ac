# SPDX-License-Identifier: BSD-3-Clause
"""The core is pure: freestanding C without variables that calls five functions.

So are erasure codes, except for the file that opens a library.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from support import ROOT, require_tool, run

CORE = sorted((ROOT / "ffi/core").rglob("*.c"))
CORE += [ROOT / f"ffi/code/{name}.c" for name in ("code", "codec", "field")]
FLAGS = ("-std=c11", "-ffreestanding", "-Iffi", "-Iffi/include")
# A machine without floating point or an operating system.
RV64 = ("-march=rv64imac", "-mabi=lp64", "-mcmodel=medany")
# For each machine, the prefix of its compiler's name, and options.
TARGETS = {
    "x86_64": ("", ()),
    "aarch64": ("aarch64-linux-gnu-", ()),
    "rv64": ("riscv64-unknown-elf-", RV64),
}
# The functions that GCC requires even of a freestanding environment, and the function
# that assertions call.
ALLOWED = {"memcpy", "memset", "memmove", "memcmp", "mmc_assert_failed"}


@pytest.mark.parametrize("optimise", ["-O0", "-O2"])
@pytest.mark.parametrize("target", TARGETS)
def test_core_is_freestanding(target: str, optimise: str, tmp_path: Path) -> None:
    """The core builds without a warning, needs only ALLOWED, and has no variables."""
    prefix, machine = TARGETS[target]
    gcc = require_tool(f"{prefix}gcc")
    objects = []
    for source in CORE:
        objects.append(tmp_path / f"{source.parent.name}_{source.stem}.o")
        command = [gcc, *FLAGS, *machine, optimise, "-c", source, "-o", objects[-1]]
        assert run(command, limit_s=60) == "", "a warning"
    symbols = run([require_tool(f"{prefix}nm"), "-P", *objects], limit_s=60)
    # Lines that end in a colon name the file whose symbols follow.
    kinds = [line.split()[:2] for line in symbols.splitlines() if line[-1] != ":"]
    undefined = {name for name, kind in kinds if kind == "U"}
    defined = {name for name, kind in kinds if kind != "U"}
    assert undefined - defined <= ALLOWED
    sizes = run([require_tool(f"{prefix}size"), "-A", *objects], limit_s=60)
    sections = [line.split() for line in sizes.splitlines() if line[:1] == "."]
    variables = {words[1] for words in sections if words[0] in {".data", ".bss"}}
    assert variables == {"0"}
