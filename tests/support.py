# SPDX-License-Identifier: BSD-3-Clause
"""Helpers for all tests: paths, and functions that find, run and launch programs."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"

# BIN holds the programs ``python`` and ``mpirun`` to use with Open MPI, MPICH_BIN those
# to use with MPICH. BIN must not be resolved: the ``python`` of a virtual environment
# is a link that leads out of the environment.
BIN = Path(sys.executable).parent
MPICH_BIN = ROOT / ".venv-mpich/bin"

TIMED_OUT = 124  # the status of a command that ran past its limit, as with timeout(1)


def choose_seed() -> int:
    """Return the seed of this run, the same in all its processes.

    It is ``MPIMCAST_TEST_SEED`` if that is set. Otherwise it is the time in seconds
    since 1970, and the variable is set to it for the processes that this one starts.
    """
    return int(os.environ.setdefault("MPIMCAST_TEST_SEED", str(int(time.time()))))


def find_tool(name: str) -> str | None:
    """Search `BIN`, then ``PATH``, for a program; return its path, or None."""
    return shutil.which(name, path=f"{BIN}{os.pathsep}{os.environ['PATH']}")


def require_tool(name: str) -> str:
    """Return the path of a program that the calling test requires.

    A missing program skips the test, with its name as the reason; under ``CI=true``,
    where nothing may be missing, it fails the test.
    """
    path = find_tool(name)
    if path is None:
        skip_or_fail(f"{name} is not installed")
    return path


def skip_or_fail(reason: str) -> None:
    """Skip the running test for this reason, or fail it under ``CI=true``."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"{reason}; CI must run this test", pytrace=False)
    pytest.skip(reason)


def run(
    command: Sequence[str | Path], *, limit_s: float, cwd: Path = ROOT, **env: str
) -> str:
    """Run a command and return its output; fail the test if the command fails.

    Parameters
    ----------
    command
        Program and arguments.
    limit_s
        Seconds after which the command is ended and the test fails.
    cwd
        Directory to run in.
    **env
        Environment variables to set besides those of this process.
    """
    code, output = run_unchecked(command, limit_s=limit_s, cwd=cwd, **env)
    if code != 0:
        shown = " ".join(map(str, command))
        pytest.fail(f"exit status {code} of: {shown}\n{output}", pytrace=False)
    return output


def run_unchecked(
    command: Sequence[str | Path],
    *,
    limit_s: float,
    cwd: Path = ROOT,
    **env: str,
) -> tuple[int, str]:
    """Run a command and return its exit status and output.

    The command has no input. After `limit_s` seconds it gets SIGTERM, so that a
    launcher can end its ranks. Ten seconds later, or earlier if the command ends, the
    rest of its process group is killed. The status is then TIMED_OUT.
    """
    process = subprocess.Popen(
        command,
        cwd=cwd,
        env={**os.environ, **env},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=10)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
        return TIMED_OUT, f"{output}\nstopped: still running after {limit_s:g} s\n"
    return process.returncode, output


def mpirun(
    nranks: int, *options: str | Path, bin_folder: Path = BIN
) -> list[str | Path]:
    """Return the beginning of a command that runs Python on `nranks` ranks.

    The caller appends Python's arguments. If this process runs as root, this function
    also sets, in `os.environ`, the variables that let Open MPI launch ranks as root.

    Parameters
    ----------
    nranks
        Number of processes.
    *options
        Further options of mpirun.
    bin_folder
        The folder that holds mpirun and python.
    """
    if os.geteuid() == 0:
        os.environ["OMPI_ALLOW_RUN_AS_ROOT"] = "1"
        os.environ["OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"] = "1"
    # MPICH does not bind ranks by default; told not to bind, it cannot spawn processes.
    binding = () if bin_folder == MPICH_BIN else ("--bind-to", "none")
    launcher = [bin_folder / "mpirun", *binding, "-n", str(nranks)]
    return [*launcher, *options, bin_folder / "python"]
