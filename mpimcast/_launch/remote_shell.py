# SPDX-License-Identifier: BSD-3-Clause
"""The program that ``mpirun`` runs instead of ssh, with ssh's arguments.

``python -m mpimcast._launch.remote_shell TOKEN [OPTION ...] HOST WORD ...`` sends the
words to the process that launched the job, which has a process on that host run them in
a shell. It lives as long as the process that launched the job.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

from mpimcast._launch import sockets

if TYPE_CHECKING:
    import socket
    from collections.abc import Sequence

PURPOSE = "shell"


def main(token: str, *arguments: str) -> None:
    """Hand the arguments over."""
    with sockets.connect(token, PURPOSE) as connection:
        connection.sendall(json.dumps(parse(arguments)).encode() + b"\n")
        connection.recv(1)


def parse(arguments: Sequence[str]) -> tuple[str, str]:
    """Return the host, and the command for its shell, of ssh's arguments."""
    rest = list(arguments)
    while rest[0].startswith("-"):
        del rest[0]
    return rest[0], " ".join(rest[1:])


def receive(connection: socket.socket) -> tuple[str, str]:
    """Return what `main` has sent: a host and a command."""
    with connection.makefile("rb") as file:
        host, command = json.loads(file.readline())
    return host, command


if __name__ == "__main__":
    main(*sys.argv[1:])
