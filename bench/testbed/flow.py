# SPDX-License-Identifier: BSD-3-Clause
"""Run a TCP stream between two hosts of a cluster, as fast as their links allow.

Its ends are two programs, which `flowing` starts in the hosts: ``python -m
bench.testbed.flow receive ADDRESS`` and ``python -m bench.testbed.flow send ADDRESS
PORT``. The receiver first prints its port, and later the bytes received, if asked.
"""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from bench.testbed.host import Host

_ROOT = Path(__file__).resolve().parents[2]
_BUFFER_BYTES = 1 << 18
_LIMIT_S = 10


class Flow(NamedTuple):
    """A running stream, and the process that receives it."""

    receiver: subprocess.Popen[str]

    def received_bytes(self) -> int:
        """Return how many bytes have arrived since the stream began."""
        assert self.receiver.stdin is not None  # noqa: S101 -- both are pipes
        assert self.receiver.stdout is not None  # noqa: S101 -- both are pipes
        self.receiver.stdin.write("\n")
        self.receiver.stdin.flush()
        return int(self.receiver.stdout.readline())


@contextlib.contextmanager
def flowing(source: Host, target: Host, address: str) -> Iterator[Flow]:
    """Run a stream from host `source` to host `target` until the end of the block.

    `address` is the target's.
    """
    program = [sys.executable, "-m", "bench.testbed.flow"]
    with contextlib.ExitStack() as stack:
        receiver = stack.enter_context(
            subprocess.Popen(
                [*target.enter(_ROOT), *program, "receive", address],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        )
        stack.callback(receiver.kill)
        assert receiver.stdout is not None  # noqa: S101 -- a pipe
        port = receiver.stdout.readline().strip()
        sender = stack.enter_context(
            subprocess.Popen([*source.enter(_ROOT), *program, "send", address, port])
        )
        stack.callback(sender.kill)
        yield Flow(receiver)


def _receive(address: str) -> None:
    """Receive one stream; print the bytes received so far for each line of input."""
    received_bytes = 0

    def receive() -> None:
        nonlocal received_bytes
        connection, _ = listener.accept()
        buffer = bytearray(_BUFFER_BYTES)
        while count := connection.recv_into(buffer):
            received_bytes += count

    with socket.create_server((address, 0)) as listener:
        threading.Thread(target=receive, daemon=True).start()
        print(listener.getsockname()[1], flush=True)
        for _ in sys.stdin:
            print(received_bytes, flush=True)


def _send(address: str, port: str) -> None:
    """Send until the receiver closes the connection."""
    with socket.create_connection((address, int(port)), _LIMIT_S) as connection:
        connection.settimeout(None)
        with contextlib.suppress(OSError):
            while True:
                connection.sendall(bytes(_BUFFER_BYTES))


if __name__ == "__main__":
    {"receive": _receive, "send": _send}[sys.argv[1]](*sys.argv[2:])
