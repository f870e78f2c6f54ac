# SPDX-License-Identifier: BSD-3-Clause
"""Partial completion of what the MPI library carries: all blocks land at the end."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from mpimcast._support.pauses import pause_s

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mpi4py import MPI

    from mpimcast._session.collectives import Collective
    from mpimcast._session.places import Places

# The MPI library offers nothing to sleep on, so it is asked after each pause.
_PAUSE_S_MIN = 20e-6
_PAUSE_S_MAX = 1e-3


class HostedLanding:
    """The blocks of an operation of the MPI library's.

    Parameters
    ----------
    comm, kind, arguments
        The communicator, what stands for the collective, and what it was called with.
    request
        Its request.
    callbacks
        The functions that its end calls.
    """

    polls = True

    def __init__(
        self,
        comm: MPI.Intracomm,
        kind: Callable[..., Collective],
        arguments: Sequence[Any],
        request: MPI.Request,
        callbacks: list[Callable[[int], object]],
    ) -> None:
        def make() -> Places:
            return kind(comm, *arguments).places()

        self._make = make
        self._known: Places | None = None
        self._request = request
        self._callbacks = callbacks

    @property
    def _places(self) -> Places:
        if self._known is None:
            self._known = self._make()
        return self._known

    @property
    def ranks(self) -> range:
        """The ranks that have a block."""
        return self._places.ranks

    def look(self, index: int) -> int | None:
        """Return whose block was number `index` to land; None if none was so far."""
        return self._places.order()[index] if self._request.Get_status() else None

    def wait(self, index: int) -> int:
        """Wait until so many blocks have landed; return whose the last one is."""
        self._wait()
        return self._places.order()[index]

    def wait_block(self, rank: int) -> None:
        """Wait until the block of `rank` has landed."""
        self._places.nbytes(rank)
        self._wait()

    def test_range(self, first: int, count: int) -> bool:
        """Return whether items of the receive buffer are present."""
        self._places.ranges(first, count)
        return bool(self._request.Get_status())

    def wait_range(self, first: int, count: int) -> None:
        """Wait until items of the receive buffer are present."""
        self._places.ranges(first, count)
        self._wait()

    def chunks(self) -> tuple[Any, int]:
        """Return the array of the bits of the chunks, and how many there are."""
        words = np.array([self._request.Get_status()], np.uint64)
        words.flags.writeable = False
        return words, 1

    def help_on(self) -> None:
        """Do nothing: to look makes progress."""

    def listen(self, wake: Callable[[], None]) -> None:
        """Do nothing: nobody tells."""

    def unlisten(self, wake: Callable[[], None]) -> None:
        """Do nothing: nobody tells."""

    def on_block(self, call: Callable[[int], object]) -> None:
        """Have a function called for each block once the request is waited for."""
        self._callbacks.append(call)
        if not self._request:  # it has been
            self.tell()

    def tell(self) -> None:
        """Call the callbacks of a request that is complete."""
        while self._callbacks:
            call = self._callbacks.pop(0)
            for rank in self._places.order():
                call(rank)

    def _wait(self) -> None:
        begin_s = time.monotonic()
        while not self._request.Get_status():
            waited_s = time.monotonic() - begin_s
            time.sleep(pause_s(waited_s, _PAUSE_S_MIN, _PAUSE_S_MAX))
