# SPDX-License-Identifier: BSD-3-Clause
"""``python -m mpimcast {run,info,doctor,demo,bench,sim}``."""

from __future__ import annotations

import os
import sys
from importlib import import_module

_COMMANDS = {
    "run": "run a script with MPI.COMM_WORLD replaced",
    "info": "say what was built and found, and which settings are in effect",
    "doctor": "find nodes that spoil collectives, and say what mends them",
    "demo": "unshard a model through multicast, beside the MPI library",
    "bench": "time collectives, ours and the MPI library's side by side",
    "sim": "simulate one operation",
}


def main(argv: list[str]) -> int:
    """Run a command and return its exit status."""
    if argv[:1] == ["run"]:  # a user's program: what it raises is its own
        return _main(argv)
    try:
        try:
            return _main(argv)
        finally:
            print(end="", flush=True)
    except BrokenPipeError:
        # Of a reader like `head`, which has enough. What is still in the buffer
        # goes nowhere, so that Python's own end does not complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _main(argv: list[str]) -> int:
    if argv and argv[0] in _COMMANDS:
        status: int = import_module(f"mpimcast.{argv[0]}").main(argv[1:])
        return status
    out = sys.stdout if argv in (["-h"], ["--help"]) else sys.stderr
    print("usage: python -m mpimcast COMMAND [ARGUMENT ...]\n", file=out)
    for name, doc in _COMMANDS.items():
        print(f"  {name:8}{doc}", file=out)
    return 0 if out is sys.stdout else 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
