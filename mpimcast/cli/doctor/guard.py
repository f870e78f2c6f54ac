# SPDX-License-Identifier: BSD-3-Clause
"""Guards a process by its parent, which ends it in time whatever happens to it.

An MPI library may wait for a rank for ever, inside a call that lets no Python thread
run; the call that initialises it is one.
"""

from __future__ import annotations

import ctypes
import os
import signal
import time

_PR_SET_PDEATHSIG = 1


def run_guarded(limit_s: float) -> bool:
    """Continue in a child of this process.

    Returns
    -------
    bool
        True in the child; False in the parent once the child is overdue and has been
        killed. If the child ends by itself, the parent ends with the same status.
    """
    watched = {signal.SIGCHLD, signal.SIGTERM, signal.SIGINT}
    deadline_s = time.monotonic() + limit_s
    before = signal.pthread_sigmask(signal.SIG_BLOCK, watched)
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # the parent ended before prctl() took effect
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
