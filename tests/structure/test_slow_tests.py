# SPDX-License-Identifier: BSD-3-Clause
"""Each name in slow.txt is a test's, and each folder keeps tests that are not slow."""

from __future__ import annotations

import subprocess
import sys

import support


def test_each_is_a_test_of_ours() -> None:
    """Pytest finds each slow test by its name, and the names are sorted."""
    tests = support.slow_tests()
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
