# SPDX-License-Identifier: BSD-3-Clause
"""One operation under way, for which no thread need wait.

To the MPI library it is a generalised request, which programs may await together with
the library's own. Any of three threads may notice completion: a waiter, a tester, or
the completer. Exactly one ends the operation: it frees C's request and completes MPI's.
MPI then queries the request in the thread that waits or tests, where received data is
unpacked before that thread learns of the completion.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Protocol

from mpi4py import MPI

from mpimcast._mpi import error_codes
from mpimcast._session.landing import Landing, as_error
from mpimcast._session.staged import StagedOperation
from mpimcast.errors import Error

if TYPE_CHECKING:
    from collections.abc import Callable

    from mpimcast._native.calls import AnyStream
    from mpimcast._native.operation import Description
    from mpimcast._session.collectives import Collective, Staging
    from mpimcast._session.operations import Operation, Operations
    from mpimcast._support.patience import Patience


class Owner(Protocol):
    """The communicator that an operation under way belongs to.

    Attributes
    ----------
    operations : Operations
        What makes its operations.
    """

    operations: Operations

    def patience(self) -> Patience:
        """Return the patience of a wait that begins now."""

    def idle(self, native: Operation) -> None:
        """Let the MPI library make progress, and answer ranks that await this one."""

    def warn(self, native: Operation) -> None:
        """Log which rank a long operation waits for."""

    def tell_apart(
        self, error: Error, native: Operation, description: Description
    ) -> Error:
        """Return an error that names the ranks which started another operation."""

    def poison(self, stream: AnyStream) -> None:
        """Record that an operation of a stream has failed."""

    def fail(self, error: BaseException) -> None:
        """Call the communicator's error handler."""

    def ended(self, pending: Pending) -> None:
        """Record that an operation has ended."""

    def give_back(self, staging: Staging) -> None:
        """Take back an operation's staging memory."""


class Pending:
    """An operation from its start until MPI has reported its end.

    It keeps the user's buffers alive, and MPI's request keeps it alive.

    Attributes
    ----------
    request : MPI.Grequest or None
        The MPI library's request for the operation, once started.
    stream : Stream or NodeStream
        The stream that it runs on.
    over : bool
        Whether C has finished with the operation and its buffers.
    error : Exception or None
        The reason of the failure, if it failed.
    landing : Landing
        Which of its blocks have landed.
    """

    def __init__(
        self,
        owner: Owner,
        stream: AnyStream,
        collective: Collective,
        description: Description,
        staging: Staging,
    ) -> None:
        self.request: MPI.Grequest | None = None
        self.over = False
        self.error: Exception | None = None
        self._owner = owner
        self._operations = owner.operations
        self.stream = stream
        self._collective = collective
        self._staging = staging
        self._description = description
        self._native = owner.operations.make(stream, collective)
        self.landing = Landing(
            self,
            collective.places(),
            self._native.landing,
            attended=owner.operations.attended,
        )
        description.report_blocks()
        # Held by the thread that checks for completion.
        self._lock = threading.Lock()
        self._poked = False
        self._native_over = False
        self._raises_own_error = False
        self._finished = False
        # Held by the thread that unpacks; a callback may ask in the same thread.
        self._unpacking = threading.RLock()
        self._unpacked = False

    def start(self) -> None:
        """Start the operation, without waiting for any other rank."""
        with self._lock:
            try:
                self._collective.pack(self._description, self._staging)
                over = self._native.start(self._description, waits=False)
                self.request = MPI.Grequest.Start(self._query, self._free, self._refuse)
            except BaseException:
                self._native.cancel()
                self._native.free()
                self.over = True
                raise
            if over:
                self._end()
        self._serve_pokes()

    # ---- until completion ----------------------------------------------------

    def poke(self) -> None:
        """Check for completion; make a thread that is already checking check again."""
        self._poked = True
        self._serve_pokes()

    def help_on(self, *, attended: bool) -> None:
        """Check for completion, if that may have to come from whoever waits for others.

        It may where no completer attends to the operation. And where a device copies,
        later operations wait behind this one: their waiters may complete pieces of it
        of which no completer hears at once.
        """
        if not attended or isinstance(self._native, StagedOperation):
            self.poke()

    def sleep(self) -> None:
        """Wait for completion, and let the MPI library make progress meanwhile."""
        patience = self._owner.patience()
        while not self.over:
            self._owner.idle(self._native)
            with self._lock:
                self._check(self._native.wait)
                if not self.over and patience.take_warning():
                    self._owner.warn(self._native)
            self._serve_pokes()
        self.landing.join()

    def sleep_until(
        self, reached: Callable[[], bool], doze: Callable[[], None]
    ) -> None:
        """Wait until `reached()` or the end; `doze` waits for a slice of time."""
        patience = self._owner.patience()

        def is_over() -> bool:
            doze()
            return self._native.test()

        while not (reached() or self.over):
            self._owner.idle(self._native)
            with self._lock:
                self._check(is_over)
                if not self.over and patience.take_warning():
                    self._owner.warn(self._native)
            self._serve_pokes()

    def rouse(self) -> None:
        """Have the completer look at the operation; without one, look here."""
        if self._operations.attended:
            self._operations.wake()
        else:
            self.landing.tell()

    def raising_own_error(self, see: Callable[[], bool]) -> bool:
        """Return `see()`, which asks MPI; if the operation failed, raise its error."""
        self._raises_own_error = True
        try:
            seen = see()
        finally:
            self._raises_own_error = False
        error = self.error or self.landing.error
        if seen and error is not None:
            raise error
        return seen

    def give_up(self) -> None:
        """Cancel the operation for all ranks unless it has completed."""
        with self._lock:
            if not self.over:
                self._native.cancel()
                self._check(self._native.test)
        self.landing.tell()

    def _serve_pokes(self) -> None:
        while self._poked and self._lock.acquire(blocking=False):
            try:
                self._poked = False
                self._check(self._native.test)
            finally:
                self._lock.release()
        if not self._operations.attended:
            self.landing.tell()

    def _check(self, is_over: Callable[[], bool]) -> None:
        """End the operation if it has completed. The caller holds the lock."""
        if self.over or self.request is None:
            return
        try:
            if not (self._native_over or is_over()):
                return
        except Error as error:
            self.error = self._owner.tell_apart(error, self._native, self._description)
            self._owner.poison(self.stream)
        except Exception as error:  # noqa: BLE001 -- the request reports it
            self.error = error
            self._owner.poison(self.stream)
        self._end()

    def _end(self) -> None:
        # If Ctrl-C interrupts this function, the next `_check` calls it again.
        self._native_over = True
        self.landing.close()
        self._native.free()
        owes = self.landing.end()
        self.over = True
        if owes and self._operations.attended:
            self._operations.wake()
        elif not owes:
            self.finish()

    def finish(self) -> None:
        """Complete MPI's request, for good. Nothing is owed to callbacks any more."""
        request = self.request
        if request is None or self._finished:
            return
        self._finished = True
        self._owner.ended(self)
        request.Complete()

    # ---- callbacks of the MPI library ----------------------------------------

    def _query(self, status: MPI.Status) -> None:
        """Unpack on the first call; set the status as collectives do, or raise."""
        status.Set_source(MPI.ANY_SOURCE)
        status.Set_tag(MPI.ANY_TAG)
        status.Set_elements(MPI.BYTE, 0)
        status.Set_cancelled(flag=False)
        self.unpack()
        error = self.error
        if error is None and self.landing.error is not None:
            error = as_error(self.landing.error)
        if error is not None and not self._raises_own_error:
            raise MPI.Exception(error_codes.error_code(error))

    def unpack(self) -> None:
        """Put received data in its place, unless that has been done."""
        with self._unpacking:
            if not self._unpacked:
                self._unpacked = True
                self._receive()

    def _receive(self) -> None:
        try:
            if self.error is None:
                self._collective.unpack(self._staging)
        except Exception as error:  # noqa: BLE001 -- the request reports it
            self.error = error
        # It may hold a datatype, which MPICH 4.0 cannot free in `_free`.
        del self._collective
        if self.error is not None:
            self._owner.fail(self.error)

    def _free(self) -> None:
        self._owner.give_back(self._staging)
        self.request = None
        if not self._unpacked:
            del self._collective

    @staticmethod
    def _refuse(_completed: bool) -> None:  # noqa: FBT001 -- as MPI calls it
        """Refuse to cancel the operation, as MPI does for collectives."""
        raise MPI.Exception(MPI.ERR_REQUEST)
