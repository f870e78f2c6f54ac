# SPDX-License-Identifier: BSD-3-Clause
"""The completer: the thread that completes requests for which no thread waits.

C's own thread makes progress on the operations, but never calls MPI. One Python
thread for all communicators of the process sleeps in C until operations have ended,
and then has their requests completed.
"""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

from mpimcast._native import engine

if TYPE_CHECKING:
    from mpimcast._session.pending import Pending


class _Completer:
    """The completer thread, and the operations that it looks after."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.nusers = 0
        self.pending: set[Pending] = set()
        self._notifications = engine.Notifications()
        self._stopping = False
        # A daemon, since at the program's end `stop` runs in an exit handler, before
        # which Python waits for all threads that are not daemons.
        self._thread = threading.Thread(
            target=self._run, name="mpimcast completer", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        self._stopping = True
        self._notifications.rouse()
        self._thread.join()
        self._notifications.close()

    def _run(self) -> None:
        engine.unbind_thread()
        while not self._stopping:
            self._notifications.wait()
            for each in self.pending.copy():  # one atomic step, even without the GIL
                each.poke()


_lock = threading.Lock()
_completer: _Completer | None = None


def acquire() -> set[Pending]:
    """Keep the thread running until `release`; start it if it is not running.

    Returns
    -------
    set
        The operations that the thread looks after, from before their start until they
        have ended.
    """
    global _completer  # noqa: PLW0603 -- there is one in a process
    with _lock:
        # A child of fork() has its parent's memory, but not its thread.
        if _completer is None or _completer.pid != os.getpid():
            _completer = _Completer()
        _completer.nusers += 1
        return _completer.pending


def release() -> None:
    """Release the thread, which ends with its last user."""
    global _completer  # noqa: PLW0603
    with _lock:
        if _completer is None or _completer.pid != os.getpid():
            return
        _completer.nusers -= 1
        if _completer.nusers == 0:
            _completer.stop()
            _completer = None
