# SPDX-License-Identifier: BSD-3-Clause
"""Requests of collectives that are ours, as programs hold them.

They are the MPI library's: its ``Waitall``, ``Waitany``, ``Testsome`` and so on take
them together with others. Waiting in their own ``Wait`` is better, though: that
sleeps, where the library's polls.
"""

from __future__ import annotations

import contextlib
import functools
import weakref
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from mpi4py import MPI

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from typing_extensions import Self

    from mpimcast.pending import Pending


# Under `run` the name is another's.
_start_theirs = MPI.Prequest.Startall

# What is derived from mpi4py's classes is, for Python, of the first one's kind.
if TYPE_CHECKING:
    _Mixin = MPI.Request
else:
    _Mixin = object


class _Ours(_Mixin):
    """What requests of ours have in common."""

    _pending: Pending | None = None

    def Wait(self, status: MPI.Status | None = None) -> Literal[True]:  # noqa: N802
        """Sleep until the operation is over. Raises its error."""
        if self._pending is None or self == MPI.REQUEST_NULL:
            return super().Wait(status)
        self._pending.sleep()
        self._pending.heed(partial(super().Wait, status))
        return True

    def Test(self, status: MPI.Status | None = None) -> bool:  # noqa: N802
        """Return whether the operation is over. Raises its error."""
        if self._pending is None or self == MPI.REQUEST_NULL:
            return super().Test(status)
        self._pending.poke()
        return self._pending.heed(partial(super().Test, status))

    def wait(self, status: MPI.Status | None = None) -> None:
        """Wait as ``Wait`` does; there is no object to return."""
        self.Wait(status)

    def test(self, status: MPI.Status | None = None) -> tuple[bool, None]:
        """Test as ``Test`` does; there is no object to return."""
        return self.Test(status), None

    def Cancel(self) -> None:  # noqa: N802
        """Raise: collective operations cannot be cancelled."""
        raise MPI.Exception(MPI.ERR_REQUEST)

    def cancel(self) -> None:
        """Raise as ``Cancel`` does."""
        self.Cancel()

    def Free(self) -> None:  # noqa: N802
        """Raise: a collective operation must be waited for."""
        raise MPI.Exception(MPI.ERR_REQUEST)

    def free(self) -> None:
        """Do as ``Free`` does."""
        self.Free()


class Request(_Ours, MPI.Request):
    """A collective that was started."""

    def __new__(cls, pending: Pending) -> Self:
        """Be the request that the MPI library knows."""
        made = super().__new__(cls, pending.request)
        made._pending = pending
        return made


class Prequest(_Ours, MPI.Prequest):
    """A collective that can be started again and again.

    While it is not active it equals ``MPI.REQUEST_NULL``. Several are started by
    `mpimcast.Startall`; ``MPI.Prequest.Startall``, which knows the library's handles
    alone, raises MPI_ERR_REQUEST, unless the program runs under
    ``python -m mpimcast run``.
    """

    def __new__(cls, *_: object) -> Self:
        """Be inactive."""
        return super().__new__(cls, MPI.REQUEST_NULL)

    def __init__(self, start: Callable[[], Pending], end: Callable[[], None]) -> None:
        _explain_refusals()
        self._start: Callable[[], Pending] | None = start
        # Also for one that is dropped.
        self._end = weakref.finalize(self, end)
        self._end.atexit = False

    def Start(self) -> None:  # noqa: N802
        """Start the collective, which needs no other rank."""
        if self._start is None or self != MPI.REQUEST_NULL:
            raise MPI.Exception(MPI.ERR_REQUEST)
        self._pending = self._start()
        if self._pending.request is not None:
            _handle(self)[:] = _handle(self._pending.request)

    def Free(self) -> None:  # noqa: N802
        """End it, which is not active, and what it holds."""
        if self._start is None or self != MPI.REQUEST_NULL:
            raise MPI.Exception(MPI.ERR_REQUEST)
        self._start = self._pending = None
        self._end()

    @classmethod
    def Startall(cls, requests: Sequence[Any]) -> None:  # noqa: N802
        """Start persistent requests, see `mpimcast.Startall`."""
        Startall(requests)


@functools.cache
def _explain_refusals() -> None:
    """Have the error of ``MPI.Prequest.Startall`` name the function that works.

    The method is one of a built-in type, and reads handles where no Python code can
    step in; but the exception that it raises can be given more words.
    """
    if MPI.Prequest.Startall is Startall:  # under `run`
        return
    said = MPI.Exception.__str__

    def say(error: MPI.Exception) -> str:
        more = error.Get_error_class() == MPI.ERR_REQUEST
        return f"{said(error).rstrip()}{_HINT if more else ''}"

    with contextlib.suppress(TypeError):  # it may be built in, too
        MPI.Exception.__str__ = say  # type: ignore[assignment,method-assign]


_HINT = " (persistent requests of mpimcast are started by mpimcast.Startall)"


def _handle(request: MPI.Request) -> MPI.buffer:
    """Return the memory in which mpi4py keeps the MPI library's handle."""
    return MPI.buffer.fromaddress(MPI._addressof(request), MPI._sizeof(request))  # noqa: SLF001


def Startall(requests: Sequence[MPI.Prequest]) -> None:  # noqa: N802
    """Start persistent requests, the MPI library's and ours in any mixture.

    ``MPI.Prequest.Startall`` refuses those that are not the library's, by an error
    that names this function; under ``python -m mpimcast run`` this stands in for it.

    Parameters
    ----------
    requests
        The requests, none of them active.

    Examples
    --------
    >>> import numpy as np
    >>> from mpi4py import MPI
    >>> import mpimcast
    >>> comm = mpimcast.Intracomm(MPI.COMM_WORLD)
    >>> shard, whole = np.ones(8), np.empty(8 * comm.size)
    >>> gather = comm.Allgather_init(shard, whole)
    >>> mpimcast.Startall([gather])
    >>> gather.Wait()
    True
    >>> gather.Free()
    """
    theirs = [each for each in requests if not isinstance(each, Prequest)]
    if theirs:
        _start_theirs(theirs)
    for each in requests:
        if isinstance(each, Prequest):
            each.Start()
