# SPDX-License-Identifier: BSD-3-Clause
"""What the tests share: where things are, which tools there are, how to launch."""

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

# Not resolve(): the environment's python is a link out of it.
BIN = Path(sys.executable).parent
MPICH_BIN = ROOT / ".venv-mpich/bin"

TIMED_OUT = 124


def choose_seed() -> int:
    """Return the seed of this run, the same in all its processes.

    ``MPIMCAST_TEST_SEED`` if it is set, else a new one every second.
    """
    return int(os.environ.setdefault("MPIMCAST_TEST_SEED", str(int(time.time()))))


def find_tool(name: str) -> str | None:
    """Return the path of a program, first of all from this environment."""
    return shutil.which(name, path=f"{BIN}{os.pathsep}{os.environ['PATH']}")


def require_tool(name: str) -> str:
    """Return the path of a program that the calling test cannot do without.

    Where it is missing the test is skipped and says so; under ``CI=true``, where
    nothing may be missing, it fails.
    """
    path = find_tool(name)
    if path is None:
        absent(f"{name} is not installed")
    return path


def absent(reason: str) -> None:
    """End a test that misses something: skipped, or failed under ``CI=true``."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"{reason}, and CI must have it", pytrace=False)
    pytest.skip(reason)


def run(
    command: Sequence[str | Path], *, limit_s: float, cwd: Path = ROOT, **env: str
) -> str:
    """Run a command and return what it printed; fail the test if it fails.

    Parameters
    ----------
    command
        Program and arguments.
    limit_s
        After this many seconds it is ended, and the test fails.
    cwd
        Directory to run in.
    **env
        Variables to set beside those of this process.
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
    """Run a command and return its exit status and what it printed.

    It has no input. A command over its limit is asked to end, so that a
    launcher takes its ranks along; what is left of its process group is killed. The
    status is TIMED_OUT.
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
        return TIMED_OUT, f"{output}\nended after its limit of {limit_s:g} s\n"
    return process.returncode, output


def mpirun(
    nranks: int, *options: str | Path, environment: Path = BIN
) -> list[str | Path]:
    """Return the beginning of a command that starts `nranks` times a Python.

    Parameters
    ----------
    nranks
        Number of processes.
    *options
        Further options of the launcher.
    environment
        The folder with both programs.
    """
    if os.geteuid() == 0:
        os.environ["OMPI_ALLOW_RUN_AS_ROOT"] = "1"
        os.environ["OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"] = "1"
    # MPICH binds nobody unless it is told to, and cannot spawn where it is told not to.
    binding = () if environment == MPICH_BIN else ("--bind-to", "none")
    launcher = [environment / "mpirun", *binding, "-n", str(nranks)]
    return [*launcher, *options, environment / "python"]
