# SPDX-License-Identifier: BSD-3-Clause
"""A Python program for a launcher to run, and how its ranks run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Program:
    """A Python program, and how its ranks run.

    Attributes
    ----------
    arguments : sequence of str or Path
        The arguments of Python.
    folder : Path
        The directory to start the program in; its path has no blanks.
    variables : mapping
        Variables of the ranks' environment.
    wrap : str
        A command, such as ``setpriv``, under which each host runs what the launcher
        starts there, and so the ranks; empty for none.
    outlive : bool
        Whether ranks go on, and end well, when another rank has died. By default they
        do not, since the MPI libraries use TCP: Open MPI ends all ranks at once, and
        MPICH's MPI_Finalize waits for ever.
    """

    arguments: Sequence[str | Path]
    folder: Path
    variables: Mapping[str, str] = field(default_factory=dict)
    wrap: str = ""
    outlive: bool = False
