# SPDX-License-Identifier: BSD-3-Clause
"""When the state of communicators ends, whatever ends it.

It is an attribute of its communicator, whose delete callback MPI calls on ``Free``.
At the program's end no callback comes: ``atexit`` closes what is open. A script
that calls ``MPI.Finalize()`` itself does so by COMM_SELF's callback.
"""

from __future__ import annotations

import atexit
import functools
import sys
from typing import TYPE_CHECKING, Protocol

from mpi4py import MPI

from mpimcast import agreement
from mpimcast.errors import Error, RankLeft, TimedOut
from mpimcast.log import logger

if TYPE_CHECKING:
    from collections.abc import Callable

    from mpimcast.binding import Binding


class _Closable(Protocol):
    """What is open and must not end before all ranks are through with it."""

    def join(self) -> None: ...

    def depart(self, *, ends: bool) -> None: ...

    def leave(self) -> MPI.Request | None: ...

    def end(self, request: MPI.Request | None) -> None: ...


class _Register:
    """All that is open in this process."""

    def __init__(self) -> None:
        self.open: list[_Closable] = []
        self.aborting = False
        self.abort: Callable[[int], None] = lambda _status: None

    def close_all(self) -> None:
        """Close everything, in an order that need not be the other ranks'.

        A program that ends by an error waits for nobody: an uncaught exception is
        on its way to the user, or mpi4py's runner is about to abort the job. Then
        nobody is told: ranks that heard of it might end the job by another status.
        """
        if MPI.Is_finalized():
            return
        closing, self.open = self.open, []
        failing = self.aborting or hasattr(sys, "last_value")
        if failing and closing:
            _report(getattr(sys, "last_value", None))
        if self.aborting:
            return
        agreement.depart()
        for each in closing:
            if not failing:
                each.join()
            each.depart(ends=True)
        requests = [None if failing else each.leave() for each in closing]
        for each, request in zip(closing, requests, strict=True):
            each.end(request)
        if _misses_ranks(getattr(sys, "last_value", None)):
            # MPI.Finalize would wait for them.
            self.abort(1)


def _report(error: BaseException | None) -> None:
    """Name this rank in the log: others may wait for it."""
    if not isinstance(error, (Error, KeyboardInterrupt)):
        why = "an exit status" if error is None else f"{type(error).__name__}: {error}"
        logger.error("the program ends here by %s", why)


def _misses_ranks(error: BaseException | None) -> bool:
    """Return whether an error, or what led to it, is that some rank did not come."""
    seen = set()
    while error is not None and id(error) not in seen:
        if isinstance(error, (TimedOut, RankLeft)):
            return True
        seen.add(id(error))
        error = error.__cause__ or error.__context__
    return False


_register = _Register()


def add(closable: _Closable) -> None:
    """Have something closed when the program or MPI ends."""
    watch()
    _register.open.append(closable)


def remove(closable: _Closable) -> None:
    """Forget something that was closed."""
    if closable in _register.open:
        _register.open.remove(closable)


def attach(comm: MPI.Intracomm, binding: Binding) -> None:
    """Make `binding` an attribute of its communicator."""
    comm.Set_attr(_keyval(), binding)


def attached(comm: MPI.Intracomm) -> Binding | None:
    """Return the binding of a communicator, if it has one."""
    return comm.Get_attr(_keyval())  # type: ignore[return-value]


@functools.cache
def _keyval() -> int:
    def delete(_comm: MPI.Comm, _keyval: int, binding: Binding) -> None:
        remove(binding)
        binding.close()

    return MPI.Comm.Create_keyval(delete_fn=delete)


@functools.cache
def watch() -> None:
    """Ask to be told of every end that there is."""
    atexit.register(_register.close_all)
    keyval = MPI.Comm.Create_keyval(delete_fn=lambda *_: _register.close_all())
    MPI.COMM_SELF.Set_attr(keyval, _register)
    # mpi4py aborts after all of Python's own handlers have run: too late to learn
    # from it that waiting for the other ranks is vain.
    announce = getattr(MPI, "_set_abort_status", None)
    if announce is not None:

        def set_abort_status(status: int) -> None:
            _register.aborting = True
            announce(status)

        _register.abort = announce
        MPI._set_abort_status = set_abort_status  # noqa: SLF001
