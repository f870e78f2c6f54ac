# SPDX-License-Identifier: BSD-3-Clause
"""A proxy in service: it runs until signals, or the want of ranks, end it."""

from __future__ import annotations

import os
import signal
import threading
from typing import TYPE_CHECKING

from mpimcast.errors import TransportError

if TYPE_CHECKING:
    from mpimcast._native.proxy import Proxy

# By this signal the thread in which the proxy runs tells that it has ended.
_ENDED = signal.SIGUSR1

_AWAITED = (signal.SIGTERM, signal.SIGINT, _ENDED)


def block_signals() -> None:
    """Keep the signals that end a proxy until `run` awaits them.

    Threads that begin later keep them, too.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, _AWAITED)


def run(proxy: Proxy, idle_s: float) -> None:
    """Run a proxy until it has ended; `block_signals` was called before.

    The first SIGTERM drains it; another one, or SIGINT, stops it. Python's own handlers
    would run when the C library returns, so this thread awaits signals, and another
    one is in the C library.

    Raises
    ------
    TransportError
        If the proxy has failed.
    """
    failures: list[TransportError] = []
    ended = threading.Event()

    def serve() -> None:
        try:
            proxy.run(idle_s)
        except TransportError as error:
            failures.append(error)
        finally:
            ended.set()
            os.kill(os.getpid(), _ENDED)

    thread = threading.Thread(target=serve, name="proxy")
    thread.start()
    drains = False
    while not ended.is_set():
        number = signal.sigwait(_AWAITED)
        if number == signal.SIGTERM and not drains:
            drains = True
            proxy.drain()
        elif number != _ENDED:
            proxy.stop()
    thread.join()
    if failures:
        raise failures[0]
