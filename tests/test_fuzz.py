# SPDX-License-Identifier: BSD-3-Clause
"""The fuzzers of tests/fuzz, each of which runs for some seconds from its corpus."""

from __future__ import annotations

from pathlib import Path

import cmake
import pytest
from support import BUILD, ROOT, require_tool, run

FUZZERS = sorted(path.stem for path in (ROOT / "tests/fuzz").glob("*_fuzz.c"))


@pytest.mark.timeout(700)
@pytest.mark.parametrize("fuzzer", FUZZERS)
def test_fuzz(fuzzer: str, seed: int, long: bool, tmp_path: Path) -> None:
    """Neither an input of the corpus nor one generated from it stops the fuzzer.

    An input that stops it is kept in build/; the end of the failure's text names it.
    """
    clang = require_tool("clang")
    folder = cmake.configure("fuzz", "MPIMCAST_FUZZ=ON", f"CMAKE_C_COMPILER={clang}")
    corpus = ROOT / "tests/fuzz/corpus" / fuzzer.removesuffix("_fuzz")
    assert any(corpus.iterdir()), f"{corpus} is empty"
    duration_s = 300 if long else 5
    options = (
        f"-max_total_time={duration_s}",
        f"-seed={seed % 2**32}",  # libFuzzer's seeds have 32 bits
        "-timeout=10",  # seconds that one input may take
        f"-artifact_prefix={BUILD}/{fuzzer}-",
    )
    # libFuzzer writes new inputs to the first folder, and only reads the others.
    program = cmake.program(folder, fuzzer)
    run([program, *options, tmp_path, corpus], limit_s=duration_s + 60)
