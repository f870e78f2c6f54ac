# SPDX-License-Identifier: BSD-3-Clause
"""The operations of a communicator that completers look after."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpimcast._session import completer

if TYPE_CHECKING:
    from collections.abc import Callable

    from mpimcast._native.calls import Notifications
    from mpimcast._session.pending import Pending


class Watch:
    """Operations under way, by what the completers listen to that look after them."""

    def __init__(self) -> None:
        self._watched: dict[Callable[[], Notifications], set[Pending]] = {}

    def add(self, pending: Pending) -> None:
        """Have completers look after an operation."""
        for source in pending.stream.sources:
            if source not in self._watched:
                # A new dictionary, since completers may be reading the old one.
                known = self._watched
                self._watched = {**known, source: completer.acquire(source)}
            self._watched[source].add(pending)

    def discard(self, pending: Pending) -> None:
        """Let no completer look after an operation, which has ended."""
        for watched in self._watched.values():
            watched.discard(pending)

    def rouse(self) -> None:
        """Have the completers look at the operations."""
        for source in self._watched:
            completer.rouse(source)

    def close(self) -> None:
        """Release the completers, which must not wait at a node that is closed."""
        for source in self._watched:
            completer.release(source)
        self._watched = {}
