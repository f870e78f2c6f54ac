# SPDX-License-Identifier: BSD-3-Clause
"""What a chunk costs: x86-64 instructions, counted by callgrind."""

from __future__ import annotations

import platform
import re
from pathlib import Path

import pytest
from support import ROOT, absent, require_tool, run

SOURCES = [*sorted((ROOT / "ffi/core").glob("*.c")), ROOT / "ffi/drivers/cover.c"]
FLAGS = ("-std=c11", "-O2", "-g", "-D_GNU_SOURCE", "-Iffi", "-Iffi/include")

# Ceilings that only ever come down. The aim is 100 for receive and 50 for send, of
# which the core's own part counts. With the copy from staging memory, which is the C
# library's, and with zero-copy receive instead, all counts.
CEILINGS = {"receive": 176, "send": 65, "stage": 600, "cover": 415}
COUNTED = {"receive": "ffi/core/", "send": "ffi/core/"}


@pytest.mark.parametrize("way", CEILINGS)
def test_instructions(
    way: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A chunk costs no more than it did, polls included."""
    if platform.machine() != "x86_64":
        absent("instructions are counted on x86-64")
    valgrind = require_tool("valgrind")
    program = tmp_path / "instructions"
    source = ROOT / "tests/c/instructions.c"
    gcc = [require_tool("gcc"), *FLAGS, source, *SOURCES, "-o", program]
    run(gcc, limit_s=120)
    profile = tmp_path / "profile"
    callgrind = [valgrind, "--tool=callgrind", "--toggle-collect=measured"]
    output = run(
        [*callgrind, f"--callgrind-out-file={profile}", program, way], limit_s=120
    )
    chunks = re.search(r"^(\d+) chunks$", output, re.MULTILINE)
    assert chunks is not None
    annotate = [require_tool("callgrind_annotate"), "--auto=no", "--threshold=100"]
    table = run([*annotate, profile], limit_s=60)
    counted = COUNTED.get(way, "PROGRAM TOTALS")
    counts = re.findall(rf"^\s*([\d,]+) .*{counted}", table, re.MULTILINE)
    spent = sum(int(count.replace(",", "")) for count in counts)
    cost = spent / int(chunks[1])
    with capsys.disabled():
        print(f" {cost:.0f} instructions per chunk")
    assert 0 < cost <= CEILINGS[way]
