# SPDX-License-Identifier: BSD-3-Clause
"""Launches the ranks of commands that need several, if they were started alone."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from mpimcast._launch import mpirun

if TYPE_CHECKING:
    from collections.abc import Sequence

_RANKS = 4

# A launcher sets at least one of these variables in a process that it starts.
_LAUNCHED = ("OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_SIZE", "PMI_RANK")


def relaunch(command: str, argv: Sequence[str]) -> None:
    """Replace this process with a launcher of ``python -m mpimcast command``.

    Do nothing if this process has been launched, or if there is no launcher.
    """
    launcher = mpirun.find()
    if launcher is None or any(name in os.environ for name in _LAUNCHED):
        return
    # Open MPI 5's launcher, PRRTE, reads these variables; others ignore them.
    os.environ.setdefault("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe")
    os.environ.setdefault("PRTE_MCA_hwloc_default_binding_policy", "none")
    sys.stdout.flush()
    python = [sys.executable, "-m", "mpimcast", command]
    os.execv(  # noqa: S606 -- no shell is wanted
        launcher, [launcher, "-n", str(_RANKS), *python, *argv]
    )
