# SPDX-License-Identifier: BSD-3-Clause
"""How this process was started: by which launcher, and among how many processes."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

# The launcher's name, its variable for the number of processes, and its variable for
# this process's number. An MPI library's own launcher comes first: inside a Slurm job
# it starts daemons by srun, whose Slurm variables the ranks inherit.
_LAUNCHERS = (
    ("Open MPI's mpirun", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"),
    ("mpiexec", "PMI_SIZE", "PMI_RANK"),
    ("srun", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID"),
)

_SAID_LIMIT_S = 3.0


class Start(NamedTuple):
    """How this process was started.

    Attributes
    ----------
    by : str
        The launcher; empty for a process that was started alone.
    size : int
        How many processes the launcher started, as the environment says.
    rank : int
        This process's number among them.
    """

    by: str
    size: int
    rank: int


def find_start(environment: Mapping[str, str]) -> Start:
    """Return how a process with this environment was started.

    The environment must be that at the process's start, since MPI libraries add
    variables that launchers did not set.
    """
    for name, size, rank in _LAUNCHERS:
        numbers = environment.get(size, ""), environment.get(rank, "")
        if all(number.isdecimal() for number in numbers):
            by_slurm = "SLURM_STEP_NUM_TASKS" in environment
            by = "srun" if name == "mpiexec" and _is_task(environment) else name
            return Start(by if by_slurm else name, *map(int, numbers))
    return Start("", 1, 0)


def _is_task(environment: Mapping[str, str]) -> bool:
    """Return whether PMI's numbers are those of the Slurm task itself."""
    return (environment.get("PMI_SIZE"), environment.get("PMI_RANK")) == (
        environment.get("SLURM_STEP_NUM_TASKS"),
        environment.get("SLURM_PROCID"),
    )


def job_nodes() -> list[str]:
    """Return the nodes of the Slurm job; none without a job, or if Slurm fails."""
    return _said("scontrol", "show", "hostnames")


def mpi_type(environment: Mapping[str, str]) -> str:
    """Return the MPI type of srun that the environment shows traces of."""
    if "PMIX_RANK" in environment:
        return "pmix"
    return "pmi2" if "PMI_FD" in environment else "none"


def mpi_type_wanted(library: str) -> str:
    """Return the MPI type of srun that a library needs, by its version's text."""
    if "CRAY" in library.upper():
        return "cray_shasta"
    return "pmix" if library.startswith("Open MPI") else "pmi2"


def mpi_types_there() -> str:
    """Return the output of ``srun --mpi=list`` in one line; "" if it cannot be run."""
    return "; ".join(_said("srun", "--mpi=list"))


def _said(program: str, *arguments: str) -> list[str]:
    """Return the lines that a Slurm program prints; none if it cannot be run."""
    path = shutil.which(program)
    if path is None:
        return []
    try:
        said = subprocess.run(
            [path, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_SAID_LIMIT_S,
            check=True,
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return []
    return [" ".join(line.split()) for line in said.splitlines() if line.strip()]
