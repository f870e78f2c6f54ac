# SPDX-License-Identifier: BSD-3-Clause
"""``python -m mpimcast run``: unmodified mpi4py programs on our communicators."""

from __future__ import annotations

import sys
from typing import Any

_USAGE = """\
usage: python -m mpimcast run SCRIPT [ARGUMENT ...]
   or: python -m mpimcast run -m MODULE [ARGUMENT ...]
   or: python -m mpimcast run -c CODE [ARGUMENT ...]

Runs a program as `python -m mpi4py` does: an exception that nobody catches aborts
the job. MPI.COMM_WORLD, and all that is derived from it, is an mpimcast.Intracomm.
"""


def main(argv: list[str]) -> int:
    """Run the program that `argv` names; it sees the rest as ``sys.argv``."""
    if argv in (["-h"], ["--help"]):
        print(_USAGE, end="")
        return 0
    option = argv[0] if argv and argv[0].startswith("-") else ""
    if not argv or option not in ("", "-m", "-c") or (option and len(argv) == 1):
        print(_USAGE, end="", file=sys.stderr)
        return 2
    from mpi4py.run import run_command_line, set_abort_status

    try:
        replace_world()
        run_command_line(argv)
    except BaseException as ending:
        known = isinstance(ending, SystemExit | KeyboardInterrupt)
        set_abort_status(ending if known else 1)
        raise
    return 0


def replace_world() -> None:
    """Make ``MPI.COMM_WORLD`` ours, for all who look it up from here on.

    And ``MPI.Prequest.Startall``, which knows only the library's requests.
    """
    from mpi4py import MPI

    from mpimcast.comm import Intracomm
    from mpimcast.requests import Startall

    library = MPI.Prequest

    class AnyPrequest(type):
        """Who asks for the name's instances means the library's."""

        def __instancecheck__(cls, instance: object) -> bool:
            return isinstance(instance, library)

        def __subclasscheck__(cls, subclass: type) -> bool:
            return issubclass(subclass, library)

    class Prequest(library, metaclass=AnyPrequest):  # type: ignore[misc,valid-type]
        @classmethod
        def Startall(cls, requests: Any) -> None:  # noqa: N802
            Startall(requests)

    Prequest.__doc__, Prequest.__module__ = library.__doc__, library.__module__
    MPI.Prequest = Prequest  # type: ignore[misc]
    MPI.COMM_WORLD = Intracomm(MPI.COMM_WORLD)  # type: ignore[misc]
