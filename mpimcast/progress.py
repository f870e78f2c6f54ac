# SPDX-License-Identifier: BSD-3-Clause
"""The thread that completes requests in which nobody waits.

C moves the operations by itself, in a thread of its own, but never calls MPI. One
Python thread for all communicators of the process sleeps in C until operations have
ended, and then has their requests completed.
"""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

from mpimcast import _ffi

if TYPE_CHECKING:
    from collections.abc import MutableSet

    from mpimcast.pending import Pending


class _Completer:
    """The thread, and what it looks after."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.nusers = 0
        self.pending: MutableSet[Pending] = set()
        self._ends = _ffi.Ends()
        self._stopping = False
        # At the program's end it is stopped by what is then closed, for which
        # Python waits only after it has waited for threads of the other kind.
        self._thread = threading.Thread(
            target=self._run, name="mpimcast completer", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        self._stopping = True
        self._ends.rouse()
        self._thread.join()
        self._ends.close()

    def _run(self) -> None:
        _ffi.unbind_thread()
        while not self._stopping:
            self._ends.wait()
            for each in tuple(self.pending):
                each.poke()


_lock = threading.Lock()
_completer: _Completer | None = None


def acquire() -> MutableSet[Pending]:
    """Have the thread run, until `release`.

    Returns
    -------
    set
        What the thread looks after: operations from before their start until they
        are over.
    """
    global _completer  # noqa: PLW0603 -- there is one in a process
    with _lock:
        # Of a parent's, a child of fork has the memory and not the thread.
        if _completer is None or _completer.pid != os.getpid():
            _completer = _Completer()
        _completer.nusers += 1
        return _completer.pending


def release() -> None:
    """Need the thread no more; with its last user it ends."""
    global _completer  # noqa: PLW0603
    with _lock:
        if _completer is None or _completer.pid != os.getpid():
            return
        _completer.nusers -= 1
        if _completer.nusers == 0:
            _completer.stop()
            _completer = None
