# SPDX-License-Identifier: BSD-3-Clause
"""``python -m mpimcast run``: unmodified mpi4py programs on our communicators."""

from __future__ import annotations

import sys

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
    """Make ``MPI.COMM_WORLD`` ours, for all who look it up from here on."""
    from mpi4py import MPI

    from mpimcast.comm import Intracomm

    MPI.COMM_WORLD = Intracomm(MPI.COMM_WORLD)  # type: ignore[misc]
