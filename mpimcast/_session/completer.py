# SPDX-License-Identifier: BSD-3-Clause
"""Completers: the threads that complete requests for which no thread waits.

C's own thread makes progress on operations over a network, but never calls MPI, and no
thread does so on operations in a node's memory. A Python thread for all communicators
of the process sleeps in C until operations have ended, and one for each node until
other ranks of the node have moved operations. Then it makes progress on those it looks
after, and completes the requests of those that have ended.
"""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

from mpimcast._native import engine

if TYPE_CHECKING:
    from collections.abc import Callable

    from mpimcast._native.calls import Notifications
    from mpimcast._session.pending import Pending

    Source = Callable[[], Notifications]


class _Completer:
    """A completer thread, and the operations that it looks after."""

    def __init__(self, source: Source) -> None:
        self.pid = os.getpid()
        self.nusers = 0
        self.pending: set[Pending] = set()
        self._notifications = source()
        self._stopping = False
        # A daemon, since at the program's end `stop` runs in an exit handler, before
        # which Python waits for all threads that are not daemons.
        self._thread = threading.Thread(
            target=self._run, name="mpimcast completer", daemon=True
        )
        self._thread.start()

    def rouse(self) -> None:
        self._notifications.rouse()

    def stop(self) -> None:
        self._stopping = True
        self.rouse()
        self._thread.join()
        self._notifications.close()

    def _run(self) -> None:
        engine.unbind_thread()
        while not self._stopping:
            self._notifications.wait()
            for each in self.pending.copy():  # one atomic step, even without the GIL
                each.poke()
                each.landing.tell()


_lock = threading.Lock()
_completers: dict[Source, _Completer] = {}


def acquire(source: Source) -> set[Pending]:
    """Keep a thread running until `release`; start it if it is not running.

    Parameters
    ----------
    source
        Makes the notifications that the thread awaits.

    Returns
    -------
    set
        The operations that the thread looks after, from before their start until they
        have ended.
    """
    with _lock:
        found = _completers.get(source)
        # A child of fork() has its parent's memory, but not its thread.
        if found is None or found.pid != os.getpid():
            found = _completers[source] = _Completer(source)
        found.nusers += 1
        return found.pending


def rouse(source: Source) -> None:
    """Have a thread look at its operations, if it is running."""
    found = _completers.get(source)
    if found is not None:
        found.rouse()


def release(source: Source) -> None:
    """Release a thread, which ends with its last user."""
    with _lock:
        found = _completers.get(source)
        if found is None or found.pid != os.getpid():
            return
        found.nusers -= 1
        if found.nusers == 0:
            del _completers[source]
            found.stop()
