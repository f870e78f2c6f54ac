# SPDX-License-Identifier: BSD-3-Clause
"""``python -m mpimcast {run,info,doctor,demo,bench,trace,proxy,sim}``."""

from __future__ import annotations

import os
import sys
from importlib import import_module

from mpimcast._mpi.library import LibraryError
from mpimcast._support.spelling import suggestion
from mpimcast.cli.commands import COMMANDS


def main(argv: list[str]) -> int:
    """Run a command and return its exit status."""
    if argv[:1] == ["run"]:  # a user's program handles its own exceptions
        return _main(argv)
    try:
        try:
            return _main(argv)
        finally:
            # A flush that fails is handled below; at Python's shutdown it would not be.
            print(end="", flush=True)
    except BrokenPipeError:
        # A reader such as `head` has closed the pipe. What is still buffered goes to
        # /dev/null, so that Python's shutdown does not complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _main(argv: list[str]) -> int:
    if argv and argv[0] in COMMANDS:
        command = import_module(f"mpimcast.cli.{argv[0]}.command")
        try:
            status: int = command.main(argv[1:])
        except LibraryError as error:
            print(f"mpimcast {argv[0]}: {error}", file=sys.stderr)
            status = 1
        return status
    if argv in (["-h"], ["--help"]):
        print(_usage())
        return 0
    print(_usage() + _complaint(argv), file=sys.stderr)
    return 2


def _usage() -> str:
    commands = [f"  {name:8}{each.summary}" for name, each in COMMANDS.items()]
    return "\n".join(
        [
            "usage: python -m mpimcast COMMAND [ARGUMENT ...]",
            "",
            "MPI collectives over multicast, for programs that use mpi4py.",
            "",
            *commands,
            "",
            "`python -m mpimcast COMMAND --help` says more about one of them.",
        ]
    )


def _complaint(argv: list[str]) -> str:
    """Return a last line, saying that the first argument is not a command, if any."""
    if not argv:
        return ""
    if argv[0].endswith(".py"):
        hint = f"a script is run by: python -m mpimcast run {argv[0]}"
    else:
        hint = suggestion(argv[0], COMMANDS)
    said = f"\n\nmpimcast: there is no command {argv[0]!r}"
    return f"{said}; {hint}" if hint else said


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
