# SPDX-License-Identifier: BSD-3-Clause
"""``python -m mpimcast {run,info,demo,sim}``."""

from __future__ import annotations

import sys
from importlib import import_module

_COMMANDS = {
    "run": "run a script with MPI.COMM_WORLD replaced",
    "info": "say what was built and found, and which settings are in effect",
    "demo": "unshard a model through multicast, beside the MPI library",
    "sim": "simulate one operation",
}


def main(argv: list[str]) -> int:
    """Run a command and return its exit status."""
    if argv and argv[0] in _COMMANDS:
        status: int = import_module(f"mpimcast.{argv[0]}").main(argv[1:])
        return status
    out = sys.stdout if argv in (["-h"], ["--help"]) else sys.stderr
    print("usage: python -m mpimcast COMMAND [ARGUMENT ...]\n", file=out)
    for name, doc in _COMMANDS.items():
        print(f"  {name:6}{doc}", file=out)
    return 0 if out is sys.stdout else 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
