# SPDX-License-Identifier: BSD-3-Clause
"""A process that outlives whatever becomes of this one, and ends it in time.

An MPI library that waits for a rank may do so for ever, inside of a call that lets no
thread of Python run, as at its start.
"""

from __future__ import annotations

import ctypes
import os
import signal
import time

_PR_SET_PDEATHSIG = 1


def run_guarded(limit_s: float) -> bool:
    """Go on in a child of this process.

    Returns
    -------
    bool
        True in the child; False in the parent once the child is overdue, and has been
        killed. If the child ends by itself, so does the parent, with its status.
    """
    watched = {signal.SIGCHLD, signal.SIGTERM, signal.SIGINT}
    deadline_s = time.monotonic() + limit_s
    before = signal.pthread_sigmask(signal.SIG_BLOCK, watched)
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it was too late for that
            os._exit(1)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return True
    while (left_s := deadline_s - time.monotonic()) > 0:
        told = signal.sigtimedwait(watched, left_s)
        if told is not None and told.si_signo != signal.SIGCHLD:
            os.kill(child, told.si_signo)
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            code = os.waitstatus_to_exitcode(status)
            os._exit(code if code >= 0 else 128 - code)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False
