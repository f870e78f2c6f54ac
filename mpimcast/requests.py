# SPDX-License-Identifier: BSD-3-Clause
"""The requests that mpimcast's collectives return to programs.

To the MPI library they are generalised requests, so its ``Waitall``, ``Waitany``,
``Testsome`` and so on accept them together with its own.
"""

from __future__ import annotations

import contextlib
import functools
import weakref
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Protocol

from mpi4py import MPI

from mpimcast.partial import Partial

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from typing_extensions import Self

    from mpimcast._support.landing import Landing


class _Operation(Protocol):
    """An operation as its request sees it; `_session.pending` implements it.

    Attributes
    ----------
    request : MPI.Grequest or None
        The generalised request; None before the start and after the end.
    """

    request: MPI.Grequest | None

    @property
    def landing(self) -> Landing:
        """Which blocks have landed."""

    def sleep(self) -> None:
        """Wait for completion."""

    def poke(self) -> None:
        """Check for completion, without waiting."""

    def raising_own_error(self, ask_mpi: Callable[[], bool]) -> bool:
        """Return `ask_mpi()`; if the operation failed, raise its error, not MPI's."""


# The MPI library's function, kept because `python -m mpimcast run` replaces it by the
# `Startall` below.
_mpi_startall = MPI.Prequest.Startall

# At run time `_Ours` must not derive from mpi4py's class: `Request` and `Prequest` list
# that class as their last base, so that the methods of `_Ours` override its own.
if TYPE_CHECKING:
    _Mixin = MPI.Request
else:
    _Mixin = object


class _Ours(Partial, _Mixin):
    """The methods that `Request` and `Prequest` share."""

    _pending: _Operation | None = None

    def _landing(self) -> Landing:
        if self._pending is None:
            raise MPI.Exception(MPI.ERR_REQUEST)
        return self._pending.landing

    def Wait(self, status: MPI.Status | None = None) -> Literal[True]:  # noqa: N802
        """Sleep until the operation is complete.

        Parameters
        ----------
        status
            Filled in as by the MPI library.

        Returns
        -------
        bool
            True.

        Raises
        ------
        Error
            If the operation failed.
        """
        if self._pending is None or self == MPI.REQUEST_NULL:
            return super().Wait(status)
        self._pending.sleep()
        self._pending.raising_own_error(partial(super().Wait, status))
        return True

    def Test(self, status: MPI.Status | None = None) -> bool:  # noqa: N802
        """Return at once whether the operation is complete.

        Parameters
        ----------
        status
            Filled in as by the MPI library, if the operation is complete.

        Returns
        -------
        bool
            Whether the operation is complete.

        Raises
        ------
        Error
            If the operation failed.
        """
        if self._pending is None or self == MPI.REQUEST_NULL:
            return super().Test(status)
        self._pending.poke()
        return self._pending.raising_own_error(partial(super().Test, status))

    def wait(self, status: MPI.Status | None = None) -> None:
        """Do as ``Wait`` does, but return None, since no object is received."""
        self.Wait(status)

    def test(self, status: MPI.Status | None = None) -> tuple[bool, None]:
        """Do as ``Test`` does, but also return None, since no object is received."""
        return self.Test(status), None

    def Cancel(self) -> None:  # noqa: N802
        """Raise ``MPI.Exception``: MPI cannot cancel a collective."""
        raise MPI.Exception(MPI.ERR_REQUEST)

    def cancel(self) -> None:
        """Raise as ``Cancel`` does."""
        self.Cancel()

    def Free(self) -> None:  # noqa: N802
        """Raise ``MPI.Exception``: a collective must be waited for."""
        raise MPI.Exception(MPI.ERR_REQUEST)

    def free(self) -> None:
        """Do as ``Free`` does."""
        self.Free()


class Request(_Ours, MPI.Request):
    """A non-blocking collective in progress, which ``Iallgather`` and its like return.

    The MPI library's own ``Waitall``, ``Waitany``, ``Testsome`` and so on accept it
    together with other requests. Those functions poll, while ``Wait`` of the request
    itself sleeps, and they raise ``MPI.Exception`` where it raises `Error`. A
    collective cannot be cancelled, and its request cannot be freed before it is
    complete (MPI-4.1, section 6.12). Parts of the result can be used before that:
    see `blocks` and the methods after it.

    Examples
    --------
    >>> import numpy as np
    >>> from mpi4py import MPI
    >>> import mpimcast
    >>> comm = mpimcast.Intracomm(MPI.COMM_WORLD)
    >>> shard, whole = np.ones(8), np.empty(8 * comm.size)
    >>> comm.Allgather(shard, whole)  # opens the transport
    >>> request = comm.Iallgather(shard, whole)
    >>> total = shard.sum()  # the transfer goes on meanwhile
    >>> request.Wait()
    True
    """

    def __new__(cls, pending: _Operation) -> Self:
        """Make a request with the handle of the operation's generalised request."""
        made = super().__new__(cls, pending.request)
        made._pending = pending
        return made


class Prequest(_Ours, MPI.Prequest):
    """A persistent collective, which ``Allgather_init`` and its like return.

    ``Start`` makes it active; once it is complete it is inactive again. While it is
    inactive it equals ``MPI.REQUEST_NULL``. `mpimcast.Startall` starts several.
    ``MPI.Prequest.Startall`` accepts the MPI library's requests only, and raises
    MPI_ERR_REQUEST for this one; under ``python -m mpimcast run`` it accepts both
    (MPI-4.1, section 6.13).

    Examples
    --------
    >>> import numpy as np
    >>> from mpi4py import MPI
    >>> import mpimcast
    >>> comm = mpimcast.Intracomm(MPI.COMM_WORLD)
    >>> shard, whole = np.ones(8), np.empty(8 * comm.size)
    >>> request = comm.Allgather_init(shard, whole)
    >>> for step in range(3):
    ...     request.Start()
    ...     complete = request.Wait()
    >>> request.Free()
    """

    def __new__(cls, *_: object) -> Self:
        """Make an inactive request."""
        return super().__new__(cls, MPI.REQUEST_NULL)

    def __init__(
        self, start: Callable[[], _Operation], end: Callable[[], None]
    ) -> None:
        _explain_refusals()
        self._start: Callable[[], _Operation] | None = start
        # Called by `Free`, or when a request that was not freed is garbage-collected.
        self._end = weakref.finalize(self, end)
        self._end.atexit = False

    def Start(self) -> None:  # noqa: N802
        """Start the collective. Local.

        Raises
        ------
        Error
            If an earlier operation of the communicator failed, or it was closed.
        MPI.Exception
            If the request is active or was freed.
        """
        if self._start is None or self != MPI.REQUEST_NULL:
            raise MPI.Exception(MPI.ERR_REQUEST)
        self._pending = self._start()
        if self._pending.request is not None:
            _handle(self)[:] = _handle(self._pending.request)

    def Free(self) -> None:  # noqa: N802
        """Free the inactive request and its references to the buffers.

        Raises
        ------
        MPI.Exception
            If the request is active or was freed before.
        """
        if self._start is None or self != MPI.REQUEST_NULL:
            raise MPI.Exception(MPI.ERR_REQUEST)
        self._start = self._pending = None
        self._end()

    @classmethod
    def Startall(cls, requests: Sequence[Any]) -> None:  # noqa: N802
        """Start persistent requests, as `mpimcast.Startall` does."""
        Startall(requests)


class _Hosted(Partial, _Mixin):
    """The methods of requests that the MPI library carries."""

    _make: Callable[..., Any]  # makes the landing of a request and its callbacks
    _callbacks: list[Callable[[int], object]]

    def __new__(cls, request: MPI.Request, make: Callable[..., Any]) -> Self:
        """Make a request with the handle, and the buffers, of another."""
        made = super().__new__(cls, request)
        made._make, made._callbacks = make, []
        return made

    def _landing(self) -> Any:
        return self._make(self, self._callbacks)

    def Wait(self, status: MPI.Status | None = None) -> Literal[True]:  # noqa: N802
        """Do as mpi4py does."""
        super().Wait(status)
        self._tell()
        return True

    def Test(self, status: MPI.Status | None = None) -> bool:  # noqa: N802
        """Do as mpi4py does."""
        if complete := super().Test(status):
            self._tell()
        return complete

    def wait(self, status: MPI.Status | None = None) -> Any:
        """Do as mpi4py does."""
        result = super().wait(status)
        self._tell()
        return result

    def test(self, status: MPI.Status | None = None) -> tuple[bool, Any]:
        """Do as mpi4py does."""
        complete, result = super().test(status)
        if complete:
            self._tell()
        return complete, result

    def _tell(self) -> None:
        if self._callbacks:
            self._landing().tell()


class HostedRequest(_Hosted, MPI.Request):
    """A request of the MPI library's, whose blocks all land at its end.

    ``Iallgather`` and its like return it where the MPI library carries the operation.
    Beside what mpi4py's own class has, it has `blocks` and the other methods that
    `Request` has for partial completion.

    Examples
    --------
    >>> comm = mpimcast.Intracomm(MPI.COMM_WORLD.Dup(), transport="mpi")
    >>> request = comm.Ibcast(np.zeros(8))
    >>> isinstance(request, mpimcast.HostedRequest), list(request.blocks())
    (True, [0])
    >>> request.Wait()
    True
    """


class HostedPrequest(_Hosted, MPI.Prequest):
    """A persistent request of the MPI library's, whose blocks all land at its end.

    ``Allgather_init`` and its like return it where the MPI library carries the
    operation. While it is inactive, it says that all blocks have landed.

    Examples
    --------
    >>> comm = mpimcast.Intracomm(MPI.COMM_WORLD.Dup(), transport="mpi")
    >>> request = comm.Bcast_init(np.zeros(8))
    >>> request.Start()
    >>> list(request.blocks())
    [0]
    >>> request.Wait()
    True
    >>> request.Free()
    """


@functools.cache
def _explain_refusals() -> None:
    """Make the error of ``MPI.Prequest.Startall`` name `mpimcast.Startall`.

    The method itself cannot be changed, since its type is built in, but the text of the
    exception that it raises can.
    """
    if MPI.Prequest.Startall is Startall:  # under `run`
        return
    said = MPI.Exception.__str__

    def say(error: MPI.Exception) -> str:
        more = error.Get_error_class() == MPI.ERR_REQUEST
        return f"{said(error).rstrip()}{_HINT if more else ''}"

    with contextlib.suppress(TypeError):  # the exception's type may also be built in
        MPI.Exception.__str__ = say  # type: ignore[assignment,method-assign]


_HINT = " (persistent requests of mpimcast are started by mpimcast.Startall)"


def _handle(request: MPI.Request) -> MPI.buffer:
    """Return the memory in which an mpi4py request keeps the MPI library's handle."""
    return MPI.buffer.fromaddress(MPI._addressof(request), MPI._sizeof(request))  # noqa: SLF001


def Startall(requests: Sequence[MPI.Prequest]) -> None:  # noqa: N802
    """Start persistent requests, whether they are the MPI library's or mpimcast's.

    ``MPI.Prequest.Startall`` refuses requests of mpimcast with an error that names
    this function. Under ``python -m mpimcast run`` this function replaces it.

    Parameters
    ----------
    requests
        The requests, all of them inactive.

    Raises
    ------
    Error
        If an earlier operation of a request's communicator failed.
    MPI.Exception
        If a request is active or was freed.

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
        _mpi_startall(theirs)
    for each in requests:
        if isinstance(each, Prequest):
            each.Start()
