# SPDX-License-Identifier: BSD-3-Clause
"""Ends the state of communicators, whatever the cause.

The state is an attribute of its communicator, whose delete callback MPI calls on
``Free``. At the program's end MPI calls none, so ``atexit`` closes what is open. If a
script calls ``MPI.Finalize()`` itself, COMM_SELF's delete callback closes it.
"""

from __future__ import annotations

import atexit
import functools
import sys
from typing import TYPE_CHECKING, Protocol

from mpi4py import MPI

from mpimcast._mpi.private import depart
from mpimcast._support.log import logger
from mpimcast._support.printed import wait_until_read
from mpimcast.errors import Error, RankLeft, TimedOut

if TYPE_CHECKING:
    from collections.abc import Callable


class Closable(Protocol):
    """An open object, which must not end while any rank still needs it."""

    def join(self) -> None: ...

    def depart(self, *, ends: bool) -> None: ...

    def leave(self, *, finishes: bool) -> MPI.Request | None: ...

    def end(self, request: MPI.Request | None) -> None: ...


class _Register:
    """All open objects of this process."""

    def __init__(self) -> None:
        self.open: list[Closable] = []
        self.aborting = False
        self.abort: Callable[[int], None] = lambda _status: None

    def close_all(self) -> None:
        """Close everything; the order need not be the same on all ranks.

        A program that ends by an error finishes none of its operations: an uncaught
        exception is on its way to the user, or mpi4py's runner is about to abort the
        job. Before such an abort, do not even tell another rank, which might end the
        job with another status. If there is no abort, MPI.Finalize will wait for all
        ranks, and so they may wait for each other here, unless some are missing.
        """
        if MPI.Is_finalized():
            return
        closing, self.open = self.open, []
        failing = self.aborting or hasattr(sys, "last_value")
        if failing and closing:
            _report(getattr(sys, "last_value", None))
        if self.aborting:
            wait_until_read()
            return
        depart()
        for each in closing:
            if not failing:
                each.join()
            each.depart(ends=True)
        deserted = _misses_ranks(getattr(sys, "last_value", None))
        requests = [
            None if deserted else each.leave(finishes=not failing) for each in closing
        ]
        for each, request in zip(closing, requests, strict=True):
            each.end(request)
        if deserted:
            # MPI.Finalize would wait for the missing ranks.
            wait_until_read()
            self.abort(1)


def _report(error: BaseException | None) -> None:
    """Log that the program fails on this rank, since others may wait for it."""
    if not isinstance(error, (Error, KeyboardInterrupt)):
        why = "an exit status" if error is None else f"{type(error).__name__}: {error}"
        logger.error("the program ends here with %s", why)


def _misses_ranks(error: BaseException | None) -> bool:
    """Return whether an error, or one that led to it, is about a missing rank."""
    seen = set()
    while error is not None and id(error) not in seen:
        if isinstance(error, (TimedOut, RankLeft)):
            return True
        seen.add(id(error))
        error = error.__cause__ or error.__context__
    return False


_register = _Register()


def add(closable: Closable) -> None:
    """Close an object when the program or MPI ends."""
    watch()
    _register.open.append(closable)


def remove(closable: Closable) -> None:
    """Remove an object that was closed."""
    if closable in _register.open:
        _register.open.remove(closable)


@functools.cache
def watch() -> None:
    """Close everything at the program's or MPI's end, and notice aborts."""
    atexit.register(_register.close_all)
    keyval = MPI.Comm.Create_keyval(delete_fn=lambda *_: _register.close_all())
    MPI.COMM_SELF.Set_attr(keyval, _register)
    # mpi4py aborts only after all of Python's own handlers have run. That would be
    # too late to learn that waiting for the other ranks is in vain.
    announce = getattr(MPI, "_set_abort_status", None)
    if announce is not None:

        def set_abort_status(status: int) -> None:
            _register.aborting = True
            announce(status)

        _register.abort = announce
        MPI._set_abort_status = set_abort_status  # noqa: SLF001
