# SPDX-License-Identifier: BSD-3-Clause
"""A process that is about to abort its job waits until its words have been read."""

from __future__ import annotations

import os
import pty
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mpimcast._support.printed import unread_bytes

if TYPE_CHECKING:
    from collections.abc import Callable

WORDS = b"why the job ends\n"
PROGRAM = """
import os, sys
from mpimcast._support.printed import wait_until_read
print("why the job ends", file=sys.stderr)
os.write(3, b"printed")
os.write(3, repr(wait_until_read(float(sys.argv[1]))).encode())
"""


def pipe() -> tuple[int, int]:
    """Return two ends: to read from, and to write to."""
    return os.pipe()


def sockets() -> tuple[int, int]:
    """Return two ends: to read from, and to write to."""
    reading, writing = socket.socketpair()
    return reading.detach(), writing.detach()


@pytest.mark.parametrize("ends", [pipe, sockets])
def test_written_bytes(ends: Callable[[], tuple[int, int]]) -> None:
    """They are unread until they are read."""
    reading, writing = ends()
    assert unread_bytes(writing) == 0
    os.write(writing, WORDS)
    assert unread_bytes(writing) >= len(WORDS)
    os.read(reading, 100)
    assert unread_bytes(writing) == 0


def test_files_and_closed_descriptors(tmp_path: Path) -> None:
    """They have nothing unread."""
    with (tmp_path / "file").open("wb+") as file:
        file.write(WORDS)
        file.flush()
        file.seek(0)
        assert unread_bytes(file.fileno()) == 0
        closed = os.dup(file.fileno())
    os.close(closed)
    assert unread_bytes(closed) == 0


def test_a_terminal_that_is_read() -> None:
    """It has nothing unread."""
    reading, writing = pty.openpty()
    os.write(writing, WORDS)
    os.read(reading, 100)
    assert unread_bytes(writing) == 0


@pytest.mark.parametrize(
    ("limit_s", "is_read", "result"), [(0.05, False, b"False"), (60, True, b"True")]
)
def test_a_process_waits_for_its_reader(
    limit_s: float, result: bytes, *, is_read: bool
) -> None:
    """It waits no longer than it is told to, if nobody reads."""
    reading, writing = os.pipe()
    program = f"import os; os.dup2({writing}, 3)\n{PROGRAM}"
    with subprocess.Popen(
        [sys.executable, "-c", program, str(limit_s)],
        stderr=subprocess.PIPE,
        pass_fds=(writing,),
    ) as process:
        os.close(writing)
        assert process.stderr
        assert os.read(reading, len(b"printed")) == b"printed"
        if is_read:
            assert process.stderr.readline() == WORDS
        assert os.read(reading, 100) == result
    os.close(reading)
