# SPDX-License-Identifier: BSD-3-Clause
"""The launchers of MPI libraries, and their command lines."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from mpimcast.errors import Error

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    # Returns the options for hosts, by the number of ranks of each. A launcher calls
    # the program at a path where it would call ssh.
    Options = Callable[[Mapping[str, int], str], list[str]]


# The last version of Open MPI whose launcher is ORTE; PRRTE's options differ.
_ORTE = 4


class LauncherError(Error):
    """MPI's launcher cannot be used."""


def find() -> str | None:
    """Return the path of the ``mpirun`` beside this Python, or of the one in PATH."""
    beside = Path(sys.executable).parent
    return shutil.which("mpirun", path=f"{beside}{os.pathsep}{os.environ['PATH']}")


def command(ranks: Mapping[str, int], shell: str) -> list[str]:
    """Return the words that launch a job, but for its program.

    Parameters
    ----------
    ranks
        How many ranks each host has, by the hosts' addresses in the order of ranks.
    shell
        The path of a program that takes ssh's arguments; only needed for several hosts.

    Raises
    ------
    LauncherError
        If there is no launcher, or if it is of a library that is not known here.
    """
    path = find()
    if path is None:
        raise LauncherError(
            "there is no mpirun, neither beside this Python nor in PATH: install that "
            "of your MPI library, or load the cluster's module"
        )
    said = subprocess.run(
        [path, "--version"], capture_output=True, text=True, check=False
    )
    options = _options(path, said.stdout + said.stderr)
    return [path, *options(ranks, shell)]


def _options(path: str, version: str) -> Options:
    """Return what makes the options for the launcher that says this of its version."""
    found = re.search(r"\(Open MPI\) (\d+)\.", version)
    if found:
        return _openmpi_4 if int(found[1]) <= _ORTE else _openmpi
    if "HYDRA" in version:
        return _mpich
    raise LauncherError(
        f"{path} is neither Open MPI's launcher nor MPICH's, and mpimcast knows no "
        f"others: start the ranks by it, without torchrun (it says: {version[:100]!r})"
    )


def _openmpi(ranks: Mapping[str, int], shell: str) -> list[str]:
    return _openmpi_by("--prtemca", "ssh", ranks, shell)


def _openmpi_4(ranks: Mapping[str, int], shell: str) -> list[str]:
    return _openmpi_by("--mca", "rsh", ranks, shell)


def _openmpi_by(
    option: str, component: str, ranks: Mapping[str, int], shell: str
) -> list[str]:
    """Return Open MPI's options; versions differ in what they call these two."""
    words = ["-n", str(sum(ranks.values())), "--bind-to", "none"]
    words += ["--map-by", "slot:OVERSUBSCRIBE"]
    if len(ranks) == 1:
        return words
    hosts = ",".join(f"{host}:{n}" for host, n in ranks.items())
    settings = {"plm": component, f"plm_{component}_agent": shell}
    # The shell is for this process's host only.
    settings[f"plm_{component}_no_tree_spawn"] = "1"
    chosen = [word for k, v in settings.items() for word in (option, k, v)]
    return [*words, *chosen, "--host", hosts]


def _mpich(ranks: Mapping[str, int], shell: str) -> list[str]:
    words = ["-n", str(sum(ranks.values()))]
    if len(ranks) == 1:
        return words
    hosts = ",".join(f"{host}:{n}" for host, n in ranks.items())
    this_host = next(iter(ranks))
    return [
        *words,
        *("-launcher", "ssh", "-launcher-exec", shell),
        *("-hosts", hosts, "-localhost", this_host),
    ]
