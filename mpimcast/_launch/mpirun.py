# SPDX-License-Identifier: BSD-3-Clause
"""The launchers of MPI libraries, and their command lines."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from mpimcast.errors import Error

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    # Returns the options for several hosts, given as HOST:RANKS,..., and the path of a
    # program that the launcher runs instead of ssh.
    Across = Callable[[str, str], list[str]]

# Whoever started the processes has decided how many there are, and where they run.
_OPENMPI = ("--bind-to", "none", "--map-by", "slot:OVERSUBSCRIBE")

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
    options, across = _options(path, said.stdout + said.stderr)
    words = [path, "-n", str(sum(ranks.values())), *options]
    if len(ranks) > 1:
        hosts = ",".join(f"{address}:{n}" for address, n in ranks.items())
        words += across(hosts, shell)
    return words


def _options(path: str, version: str) -> tuple[tuple[str, ...], Across]:
    """Return the options for any hosts, and those for several, of a launcher."""
    found = re.search(r"\(Open MPI\) (\d+)\.", version)
    if found:
        names = ("--mca", "rsh") if int(found[1]) <= _ORTE else ("--prtemca", "ssh")
        return _OPENMPI, partial(_openmpi, *names)
    if "HYDRA" in version:
        return (), _mpich
    raise LauncherError(
        f"{path} is neither Open MPI's launcher nor MPICH's, and mpimcast knows no "
        f"others: start the ranks by it, without torchrun (it says: {version[:100]!r})"
    )


def _openmpi(option: str, component: str, hosts: str, shell: str) -> list[str]:
    settings = {
        "plm": component,
        f"plm_{component}_agent": shell,
        # The shell is on this host only, so no other host may start a third.
        f"plm_{component}_no_tree_spawn": "1",
    }
    chosen = [word for k, v in settings.items() for word in (option, k, v)]
    return [*chosen, "--host", hosts]


def _mpich(hosts: str, shell: str) -> list[str]:
    this_host, _, _ = hosts.partition(":")
    return [
        *("-launcher", "ssh", "-launcher-exec", shell),
        *("-hosts", hosts, "-localhost", this_host),
    ]
