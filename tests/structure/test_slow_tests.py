# SPDX-License-Identifier: BSD-3-Clause
"""Each name in slow.txt and long.txt is a test's, and each folder keeps other tests."""

from __future__ import annotations

import subprocess
import sys

import support

SLOW, LONG = support.listed_tests("slow"), support.listed_tests("long")


def test_each_is_a_test_of_ours() -> None:
    """Pytest finds each test by its name, on one list, and the names are sorted."""
    for tests in SLOW, LONG:
        assert tests == sorted(set(tests))
    assert not set(SLOW) & set(LONG)
    subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-qq", *SLOW, *LONG],
        cwd=support.ROOT,
        check=True,
        stdout=subprocess.DEVNULL,
    )


def test_each_folder_has_others() -> None:
    """Each folder has a test function of which no case is left out."""
    slow = {test.partition("[")[0] for test in SLOW + LONG}
    for folder in {support.ROOT / test.partition("::")[0] for test in slow}:
        siblings = folder.parent.glob("test_*.py")
        functions = {
            f"{path.relative_to(support.ROOT)}::{line[4:].partition('(')[0]}"
            for path in siblings
            for line in path.read_text(encoding="utf-8").splitlines()
            if line.startswith("def test_")
        }
        assert functions - slow
