# SPDX-License-Identifier: BSD-3-Clause
"""The fuzzers of tests/fuzz, run briefly from their corpus."""

from __future__ import annotations

from pathlib import Path

import cmake
import pytest
from support import BUILD, ROOT, require_tool, run

FUZZERS = sorted(path.stem for path in (ROOT / "tests/fuzz").glob("*_fuzz.c"))


@pytest.mark.timeout(700)
@pytest.mark.parametrize("fuzzer", FUZZERS)
def test_fuzz(fuzzer: str, seed: int, long: bool, tmp_path: Path) -> None:
    """No input makes the fuzzer stop, whether of the corpus or generated.

    An input that does is kept in build/ and named in the last lines of the failure.
    """
    clang = require_tool("clang")
    folder = cmake.configure("fuzz", "MPIMCAST_FUZZ=ON", f"CMAKE_C_COMPILER={clang}")
    corpus = ROOT / "tests/fuzz/corpus" / fuzzer.removesuffix("_fuzz")
    assert any(corpus.iterdir()), f"{corpus} is empty"
    duration_s = 300 if long else 12
    options = (
        f"-max_total_time={duration_s}",
        f"-seed={seed % 2**32}",
        "-timeout=10",
        f"-artifact_prefix={BUILD}/{fuzzer}-",
    )
    # New inputs go to the first folder; the corpus in git is only read.
    program = cmake.program(folder, fuzzer)
    run([program, *options, tmp_path, corpus], limit_s=duration_s + 60)
