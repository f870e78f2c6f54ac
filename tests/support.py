# SPDX-License-Identifier: BSD-3-Clause
"""Helpers for all tests: paths, and functions that find, run and launch programs."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"

# The folders of the programs ``python`` and ``mpirun``: BIN for Open MPI, MPICH_BIN for
# MPICH. Path.resolve() would be wrong for BIN: in a virtual environment, ``python`` is
# a link to a file outside the environment.
BIN = Path(sys.executable).parent
MPICH_BIN = ROOT / ".venv-mpich/bin"

# The exit status of a command that ran past its limit, as of timeout(1).
TIMED_OUT = 124


def choose_seed() -> int:
    """Return the seed of this test run, the same in all processes of the run.

    The environment variable ``MPIMCAST_TEST_SEED`` holds the seed. If the variable is
    not set, set it to the seconds since 1970. The processes that this process starts
    inherit the variable, and so have the same seed.
    """
    return int(os.environ.setdefault("MPIMCAST_TEST_SEED", str(int(time.time()))))


def listed_tests(name: str) -> list[str]:
    """Return the tests of ``tests/<name>.txt``, by their names in pytest."""
    lines = (ROOT / f"tests/{name}.txt").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if not line.startswith("#")]


def find_tool(name: str) -> str | None:
    """Search `BIN`, then ``PATH``, for a program, and return its path, or None."""
    return shutil.which(name, path=f"{BIN}{os.pathsep}{os.environ['PATH']}")


def require_tool(name: str) -> str:
    """Return the path of a program that the calling test requires.

    If the program is missing, skip the test, and name the program as the reason. Under
    ``CI=true`` no program may be missing, so fail the test instead.
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


def torch_variables() -> dict[str, str]:
    """Return the variables by which Python finds torch; skip the test without torch.

    Not even CI must have torch: pip finds its CPU build in few places.
    """
    environment = ROOT / ".venv-gloo"
    if not (environment / "installed").exists():
        pytest.skip("torch is not in .venv-gloo/: pip has found no CPU build of it")
    packages = map(str, environment.glob("lib/*/site-packages"))
    path = os.environ.get("PYTHONPATH", "")
    return {"PYTHONPATH": os.pathsep.join(filter(None, [*packages, path]))}


def run(
    command: Sequence[str | Path], *, limit_s: float, cwd: Path = ROOT, **env: str
) -> str:
    """Run a command and return its output. If the command fails, fail the test.

    Parameters
    ----------
    command
        The program and its arguments.
    limit_s
        The number of seconds after which the command is stopped and the test fails.
    cwd
        The directory in which the command runs.
    **env
        Environment variables to set in addition to those of this process.
    """
    code, output = run_unchecked(command, limit_s=limit_s, cwd=cwd, **env)
    if code != 0:
        shown = " ".join(map(str, command))
        pytest.fail(f"exit status {code} of: {shown}\n{output}", pytrace=False)
    return output


def last_json(output: str) -> dict[str, Any]:
    """Return the last JSON object that has a line of its own in a job's output.

    Other ranks' log messages may follow it, since the outputs of ranks have no order.
    If there is no object, fail the test.
    """
    lines = [line for line in output.splitlines() if line[:1] == "{"]
    if not lines:
        pytest.fail(f"the job has printed no JSON object:\n{output}", pytrace=False)
    found: dict[str, Any] = json.loads(lines[-1])
    return found


def run_unchecked(
    command: Sequence[str | Path],
    *,
    limit_s: float,
    cwd: Path = ROOT,
    **env: str,
) -> tuple[int, str]:
    """Run a command and return its exit status and output.

    The command has no input. If it is still running after `limit_s` seconds, it gets
    SIGTERM, so that a launcher can end its ranks. As soon as the command has ended, but
    at most ten seconds later, all processes that are left of its process group are
    killed. The status of a command that ran past its limit is TIMED_OUT.
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
    """Return the first words of a command that runs Python on `nranks` ranks.

    The caller appends Python's arguments. If this process runs as root, also set the
    environment variables that allow Open MPI to launch ranks as root.

    Parameters
    ----------
    nranks
        The number of ranks.
    *options
        Further options for mpirun.
    bin_folder
        The folder that holds mpirun and python.
    """
    if os.geteuid() == 0:
        os.environ["OMPI_ALLOW_RUN_AS_ROOT"] = "1"
        os.environ["OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"] = "1"
    # Ranks must not be bound to cores. MPICH binds none by default, and with the option
    # ``--bind-to none`` its ranks could not spawn processes.
    binding = () if bin_folder == MPICH_BIN else ("--bind-to", "none")
    launcher = [bin_folder / "mpirun", *binding, "-n", str(nranks)]
    return [*launcher, *options, bin_folder / "python"]
