# SPDX-License-Identifier: BSD-3-Clause
"""A rank whose operations a runner carries out spends nothing on their chunks."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from support import ROOT, require_tool

FEW, MANY = 16, 528  # chunks of a block
FLAGS = ("-std=c11", "-O2", "-g", "-D_GNU_SOURCE", "-Iffi", "-Iffi/include")
FOLDERS = (
    *("support", "code", "core/*", "engine", "engine/*", "drivers", "drivers/udp"),
    *("drivers/fault", "drivers/protect", "drivers/remote", "offload"),
    *("server", "proxy"),
)
LIMIT_S = 200


def build(program: Path) -> None:
    """Compile the program, with all of the engine that a proxy needs."""
    sources = [
        path for name in FOLDERS for path in sorted((ROOT / "ffi").glob(f"{name}/*.c"))
    ]
    subprocess.run(
        [
            *("gcc", *FLAGS, "-pthread", "tests/c/offloaded_instructions.c"),
            *(*sources, "ffi/drivers/verbs/absent.c", "-o", program),
        ],
        cwd=ROOT,
        check=True,
        timeout=LIMIT_S,
    )


def instructions(program: Path, nchunks: int) -> int:
    """Return what rank 0 spends on two operations, by callgrind's count."""
    callgrind = ("--tool=callgrind", "--toggle-collect=measured")
    done = subprocess.run(
        [
            *("valgrind", *callgrind, f"--callgrind-out-file={program}.out"),
            *(program, str(nchunks)),
        ],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return int(re.findall(r"Collected : (\d+)", done.stderr)[-1])


@pytest.mark.timeout(3 * LIMIT_S)
def test_chunks_cost_a_host_nothing(tmp_path: Path) -> None:
    """32 times the chunks take as many instructions of the rank, but for its bells.

    Whether it has to ring for the runner depends on whether that sleeps.
    """
    for tool in ("gcc", "valgrind"):
        require_tool(tool)
    program = tmp_path / "offloaded"
    build(program)
    few, many = (instructions(program, nchunks) for nchunks in (FEW, MANY))
    assert few > 0
    assert round((many - few) / (2 * (MANY - FEW))) == 0, f"{few} {many}"
