# SPDX-License-Identifier: BSD-3-Clause
"""What make test leaves out exists, and leaves something of each kind of test."""

from __future__ import annotations

import subprocess
import sys

import support


def test_each_is_a_test_of_ours() -> None:
    """Pytest finds each slow test by its name, and it is in order."""
    lines = (support.ROOT / "tests/slow.txt").read_text(encoding="utf-8").splitlines()
    tests = [line for line in lines if not line.startswith("#")]
    assert tests == sorted(set(tests))
    subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-qq", "--slow", *tests],
        cwd=support.ROOT,
        check=True,
        stdout=subprocess.DEVNULL,
    )


def test_each_folder_has_others() -> None:
    """Each folder has a test function of which no case is left out."""
    slow = {test.partition("[")[0] for test in support.slow_tests()}
    for folder in {support.ROOT / test.partition("::")[0] for test in slow}:
        siblings = folder.parent.glob("test_*.py")
        functions = {
            f"{path.relative_to(support.ROOT)}::{line[4:].partition('(')[0]}"
            for path in siblings
            for line in path.read_text(encoding="utf-8").splitlines()
            if line.startswith("def test_")
        }
        assert functions - slow
