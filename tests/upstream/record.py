# SPDX-License-Identifier: BSD-3-Clause
"""Run test files of mpi4py by its own main.py, and record which tests pass.

Started as ``record.py TESTS RESULTS [arguments of main.py]``. Each rank writes its own
file in the folder RESULTS, line by line, so that it is useful even after a crash.
Workers of mpi4py.futures also load this file; loading it must have no effect there.
"""

from __future__ import annotations

import sys
import unittest
from pathlib import Path
from typing import Any


class Recorder(unittest.TextTestResult):
    """A test result that writes the name of each test that begins or passes."""

    folder: Path

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        from mpi4py import MPI

        rank = MPI.COMM_WORLD.Get_rank()
        self.file = (self.folder / f"rank.{rank}.tests").open("w", buffering=1)

    def startTest(self, test: unittest.TestCase) -> None:  # noqa: N802
        """Record that a test begins, since it may be the last one before a crash."""
        super().startTest(test)
        self.file.write(f"begins {test.id()}\n")

    def addSuccess(self, test: unittest.TestCase) -> None:  # noqa: N802
        """Record that a test passed with all its subtests."""
        super().addSuccess(test)
        self.file.write(f"passes {test.id()}\n")

    def addExpectedFailure(self, test: unittest.TestCase, err: Any) -> None:  # noqa: N802
        """Record that a test failed as it should."""
        super().addExpectedFailure(test, err)
        self.file.write(f"passes {test.id()}\n")

    def stopTestRun(self) -> None:  # noqa: N802
        """Record that all tests were run."""
        super().stopTestRun()
        self.file.write("ends\n")


if __name__ == "__main__":
    _, tests, results, *arguments = sys.argv
    Recorder.folder = Path(results)
    sys.path.insert(0, tests)
    sys.argv[:] = [str(Path(tests, "main.py")), *arguments]
    sys.dont_write_bytecode = True
    main = __import__("main").main
    runner = unittest.TextTestRunner(verbosity=2, resultclass=Recorder)
    main(module=None, testRunner=runner)
