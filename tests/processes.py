# SPDX-License-Identifier: BSD-3-Clause
"""Processes that a test did not start itself, and how they end."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from pathlib import Path

import pytest

_LIMIT_S = 10

# What is asked to end does so within this time, on a busy machine, too.
_END_LIMIT_S = 20


def await_end(name: str, value: str) -> None:
    """Wait until no process has this variable; fail if one does for too long."""
    deadline_s = time.monotonic() + _LIMIT_S
    while left := _having(f"{name}={value}"):
        for pid, command in left.items():
            assert _has_ended(pid, deadline_s - time.monotonic()), command


def _having(variable: str) -> dict[int, str]:
    """Return the commands of the processes that have a variable, by their numbers."""
    found = {}
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended
            if variable.encode() in (process / "environ").read_bytes().split(b"\0"):
                found[int(process.name)] = (process / "cmdline").read_text()
    return found


def _has_ended(pid: int, limit_s: float) -> bool:
    """Return whether a process ends within a time."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    with os.fdopen(descriptor) as file:
        return bool(select.select([file], [], [], max(limit_s, 0))[0])


class Process(contextlib.AbstractContextManager["Process"]):
    """A process that this one did not start; it is told apart from later ones."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._fd = os.pidfd_open(pid)

    def __exit__(self, *_: object) -> None:
        """Forget the process."""
        os.close(self._fd)

    def send(self, number: int) -> None:
        """Send it a signal."""
        signal.pidfd_send_signal(self._fd, number)

    def has_ended(self, limit_s: float) -> bool:
        """Return whether it ends within a time."""
        return bool(select.select([self._fd], [], [], limit_s)[0])

    def end(self) -> None:
        """Drain it; kill it, and fail, if it has not ended then."""
        self.send(signal.SIGTERM)
        if not self.has_ended(_END_LIMIT_S):
            self.send(signal.SIGKILL)
            pytest.fail(f"process {self.pid} still has ranks")
