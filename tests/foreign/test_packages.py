# SPDX-License-Identifier: BSD-3-Clause
"""Packages of other authors pass the same tests with mpimcast as without it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

import pytest
from sdist import fetch, install
from sides import DEFAULTS, LIBRARIES, MULTICAST, Program, start

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]

HERE = Path(__file__).parent
REQUIREMENTS = HERE / "requirements.txt"

# For each package, its tests in the sdist, and those to ignore because they need more
# packages. If all tests take too long, only those about collectives are listed.
PYLOPS = "distributedarray blockdiag fredholm matrixmult stack stackedarray"
PACKAGES: dict[str, tuple[str, ...]] = {
    "mpi-list": ("tests",),
    "mpiarray": (
        "src/mpiarray/tests",
        "--ignore-glob=*/test_units.py",
        "--ignore-glob=*/test_xarray.py",
    ),
    "pshmem": ("--pyargs", "pshmem.test"),
    "pylops-mpi": tuple(f"tests/test_{name}.py" for name in PYLOPS.split()),
}

# A package's own options for pytest, and its conftest, are left out: they name plugins
# that no test needs, or internals of another pytest. This project's time limit is off.
PYTEST = ("-m", "pytest", "-q", "-o", "addopts=", "--with-mpi")
PLUGINS = ("-p", "outcomes", "-p", "no:cacheprovider", "--timeout=0")
NO_CONFTEST = {"pylops-mpi": ("--noconftest",)}


def pinned(name: str) -> str:
    """Return the line of the requirements that pins a package."""
    line = re.search(rf"^{name}==\S+$", REQUIREMENTS.read_text(), re.MULTILINE)
    assert line is not None, name
    return line[0]


def outcomes(
    name: str,
    nranks: int,
    bin_folder: Path,
    settings: Mapping[str, str] | None,
    folder: Path,
) -> dict[str, dict[str, str]]:
    """Run a package's tests; return the outcome of each test on each rank."""
    folder.mkdir()
    path = f"{install(REQUIREMENTS)}:{HERE}"
    program = Program(
        arguments=(*PYTEST, *PLUGINS, *NO_CONFTEST.get(name, ()), *PACKAGES[name]),
        folder=fetch(pinned(name)),
        limit_s=600,
        env={"PYTHONPATH": path, "OUTCOMES": str(folder)},
    )
    status, said = start(program, nranks, bin_folder, settings)
    found = {
        path.stem: json.loads(path.read_text()) for path in sorted(folder.iterdir())
    }
    assert len(found) == nranks, said
    assert all("passed" in tests.values() for tests in found.values()), said
    failed = {
        test
        for tests in found.values()
        for test, outcome in tests.items()
        if outcome == "failed"
    }
    assert status == 0 or failed, said
    return found


@LIBRARIES
@pytest.mark.parametrize("nranks", [2, 3, 4])
@pytest.mark.parametrize("name", PACKAGES)
def test_package(name: str, nranks: int, bin_folder: Path, tmp_path: Path) -> None:
    """On every rank, a package's tests have the same outcomes as without mpimcast."""
    alone = outcomes(name, nranks, bin_folder, None, tmp_path / "alone")
    sides = {"multicast": MULTICAST, **({"defaults": DEFAULTS} if nranks == 3 else {})}
    for side, settings in sides.items():
        found = outcomes(name, nranks, bin_folder, settings, tmp_path / side)
        assert found == alone, side
