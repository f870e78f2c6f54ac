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
        A command that runs the ranks' launcher on their hosts, such as ``setpriv``.
    outlive : bool
        Whether ranks go on, and end well, when another has died. By default TCP
        prevents that: Open MPI ends the ranks at once, and MPICH's Finalize waits
        forever.
    """

    arguments: Sequence[str | Path]
    folder: Path
    variables: Mapping[str, str] = field(default_factory=dict)
    wrap: str = ""
    outlive: bool = False
