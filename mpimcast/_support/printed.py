# SPDX-License-Identifier: BSD-3-Clause
"""What this process has printed and its launcher has not yet read.

A launcher that aborts a job may throw away what lies in the pipes of its ranks, as
MPICH's does, and with it the error message that says why the job ends.
"""

from __future__ import annotations

import array
import contextlib
import fcntl
import os
import stat
import sys
import termios
import time

LIMIT_S = 1.0
_POLL_S = 0.0005


def wait_until_read(limit_s: float = LIMIT_S) -> bool:
    """Wait until all that this process printed has been read, but not for long.

    A job that is about to end must not hang because nobody reads its output.

    Parameters
    ----------
    limit_s
        The longest wait, in seconds.

    Returns
    -------
    bool
        Whether nothing is left unread in pipes, sockets and terminals.
    """
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, OSError, ValueError):
            stream.flush()
    deadline_s = time.monotonic() + limit_s
    while unread_bytes(1) or unread_bytes(2):
        if time.monotonic() >= deadline_s:
            return False
        time.sleep(_POLL_S)
    return True


def unread_bytes(fd: int) -> int:
    """Return how many of the written bytes nobody has read yet, 0 for a file."""
    count = array.array("i", [0])
    try:
        # A pipe reports this at either end; other kinds report what they have to send.
        is_pipe = stat.S_ISFIFO(os.fstat(fd).st_mode)
        fcntl.ioctl(fd, termios.FIONREAD if is_pipe else termios.TIOCOUTQ, count)
    except OSError:
        return 0
    return count[0]
