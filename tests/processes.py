# SPDX-License-Identifier: BSD-3-Clause
"""The processes of a job, which are known by a variable in their environment."""

from __future__ import annotations

import contextlib
import os
import select
import time
from pathlib import Path

_LIMIT_S = 10


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
