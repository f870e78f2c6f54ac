# SPDX-License-Identifier: BSD-3-Clause
"""The tests that come with mpi4py: fetch them, run them, and read which pass."""

from __future__ import annotations

import shutil
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import sdist
from support import BIN, BUILD, MPICH_BIN, TIMED_OUT, mpirun, run_unchecked

LIBRARIES = {"openmpi": BIN, "mpich": MPICH_BIN}
WITHOUT = ("-m", "mpi4py")
WITH = ("-m", "mpimcast", "run")
# On one host `auto` would leave everything to the MPI library.
SETTINGS = {"MPIMCAST_TRANSPORT": "udp", "MPIMCAST_MIN_BYTES": "0"}


def fetch() -> Path:
    """Return the folder with the tests of the installed version of mpi4py."""
    return sdist.fetch(f"mpi4py=={version('mpi4py')}") / "test"


class Outcome(NamedTuple):
    """The outcome of some test files.

    Attributes
    ----------
    passed : list of set of str
        By rank, the names of the tests that passed.
    ended : set of str
        The files whose tests were all run, even if some failed.
    report : str
        The output, and how each job that did not complete ended.
    """

    passed: list[set[str]]
    ended: set[str]
    report: str


def play(
    library: str, nranks: int, runner: tuple[str, ...], files: list[str], limit_s: float
) -> Outcome:
    """Run test files of mpi4py on several ranks.

    All files run in one job. If it does not complete, each file runs in a separate job.

    Parameters
    ----------
    library
        The MPI library.
    nranks
        Number of processes.
    runner
        How to start Python: WITH or WITHOUT mpimcast.
    files
        Names of the files, without ``.py``.
    limit_s
        Seconds after which a job is ended.
    """
    outcome = _launch(library, nranks, runner, files, limit_s)
    if outcome.ended or len(files) == 1:
        return outcome
    parts = [_launch(library, nranks, runner, [each], limit_s) for each in files]
    return Outcome(
        [
            set().union(*each)
            for each in zip(*(part.passed for part in parts), strict=True)
        ],
        set().union(*(part.ended for part in parts)),
        "\n".join(part.report for part in parts),
    )


def _launch(
    library: str, nranks: int, runner: tuple[str, ...], files: list[str], limit_s: float
) -> Outcome:
    """Run test files of mpi4py in one job."""
    tests = fetch()
    name = files[0] if len(files) == 1 else "all"
    folder = BUILD / "upstream" / f"{library}-n{nranks}-{runner[1]}" / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    record = Path(__file__).with_name("record.py")
    launcher = mpirun(nranks, bin_folder=LIBRARIES[library])
    status, report = run_unchecked(
        [*launcher, *runner, record, tests, folder, *files],
        limit_s=limit_s,
        cwd=folder,
        # Workers of mpi4py.futures import a test's functions from this folder.
        PYTHONPATH=str(tests),
        **SETTINGS,
    )
    (folder / "report.txt").write_text(report)
    lines = [
        path.read_text().splitlines() if path.exists() else []
        for path in (folder / f"rank.{rank}.tests" for rank in range(nranks))
    ]
    passed = [
        {line.removeprefix("passes ") for line in each if line.startswith("passes ")}
        for each in lines
    ]
    # The status does not distinguish failed tests from a broken job.
    if status != TIMED_OUT and all(each[-1:] == ["ends"] for each in lines):
        return Outcome(passed, set(files), report)
    last = [each[-1] if each else "nothing" for each in lines]
    report += f"\nexit status {status}; the last of each rank: {last}"
    return Outcome(passed, set(), report)
