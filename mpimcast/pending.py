# SPDX-License-Identifier: BSD-3-Clause
"""One operation under way, in which nobody need wait.

For the MPI library it is a generalised request, which it completes and reports
together with its own. Three may find an operation to be over: who waits in a call of
ours, who tests, and the completer. One of them ends it: gives C's request back and
completes MPI's. Received data is then unpacked in the thread that MPI tells of it,
before that one comes to know.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from mpi4py import MPI

from mpimcast import failure, flight
from mpimcast.errors import Error

if TYPE_CHECKING:
    from collections.abc import Callable

    from mpimcast import _ffi
    from mpimcast.operation import Operation, Staging
    from mpimcast.traffic import Traffic


class Pending:
    """An operation from its start until MPI has told of its end.

    Holds references to the user's buffers, and is held itself by its request.

    Attributes
    ----------
    request : MPI.Grequest or None
        The MPI library's view of it, once started.
    stream : _ffi.Stream
        Where it runs.
    over : bool
        Whether C has done with it and with the buffers.
    error : Exception or None
        Why it failed, if it did.
    """

    def __init__(
        self,
        traffic: Traffic,
        stream: _ffi.Stream,
        operation: Operation,
        moves: flight.Moves,
        staging: Staging,
    ) -> None:
        self.request: MPI.Grequest | None = None
        self.over = False
        self.error: Exception | None = None
        self._traffic = traffic
        self.stream = stream
        self._operation = operation
        self._staging = staging
        self._moves = moves
        self._flight = flight.Request(stream, str(operation))
        # Held by whoever looks whether it is over.
        self._lock = threading.Lock()
        self._poked = False
        self._landed = False
        self._heeded = False
        self._received = False

    def start(self) -> None:
        """Start it; needs no other rank."""
        with self._lock:
            try:
                self._operation.pack(self._moves, self._staging)
                over = self._flight.start(self._moves, waits=False)
                self.request = MPI.Grequest.Start(self._query, self._free, self._refuse)
            except BaseException:
                self._flight.cancel()
                self._flight.free()
                self.over = True
                raise
            if over:
                self._end(self.request)
        self._see_to_pokes()

    # ---- until it is over ----------------------------------------------------

    def poke(self) -> None:
        """See whether it is over; who is seeing to that already will once more."""
        self._poked = True
        self._see_to_pokes()

    def sleep(self) -> None:
        """Sleep until it is over, and keep the MPI library going."""
        patience = self._traffic.patience()
        while not self.over:
            self._traffic.idle(self._flight)
            with self._lock:
                self._look(self._flight.wait)
                if not self.over and patience.exhausted():
                    self._traffic.warn(self._flight)
            self._see_to_pokes()

    def heed(self, see: Callable[[], bool]) -> bool:
        """Have MPI tell by `see` whether it is over; raise the error itself."""
        self._heeded = True
        try:
            seen = see()
        finally:
            self._heeded = False
        if seen and self.error is not None:
            raise self.error
        return seen

    def give_up(self) -> None:
        """Cancel it if it is not over, for all ranks."""
        with self._lock:
            if not self.over:
                self._flight.cancel()
                self._look(self._flight.test)

    def _see_to_pokes(self) -> None:
        while self._poked and self._lock.acquire(blocking=False):
            try:
                self._poked = False
                self._look(self._flight.test)
            finally:
                self._lock.release()

    def _look(self, is_over: Callable[[], bool]) -> None:
        """Under the lock, end it if it is over."""
        if self.over or self.request is None:
            return
        try:
            if not (self._landed or is_over()):
                return
        except Error as error:
            self.error = self._traffic.tell_apart(error, self._flight, self._moves)
            self._traffic.poison(self.stream)
        except Exception as error:  # noqa: BLE001 -- told by the request
            self.error = error
            self._traffic.poison(self.stream)
        self._end(self.request)

    def _end(self, request: MPI.Grequest) -> None:
        # Ctrl-C anywhere here, and the next look goes on with it.
        self._landed = True
        self._flight.free()
        self._traffic.ended(self)
        self.over = True
        request.Complete()

    # ---- what the MPI library asks -------------------------------------------

    def _query(self, status: MPI.Status) -> None:
        """Tell of the end: of success as any collective does."""
        status.Set_source(MPI.ANY_SOURCE)
        status.Set_tag(MPI.ANY_TAG)
        status.Set_elements(MPI.BYTE, 0)
        status.Set_cancelled(flag=False)
        if not self._received:
            self._received = True
            self._receive()
        if self.error is not None and not self._heeded:
            raise MPI.Exception(failure.error_code(self.error))

    def _receive(self) -> None:
        try:
            if self.error is None:
                self._operation.unpack(self._staging)
        except Exception as error:  # noqa: BLE001 -- told by the request
            self.error = error
        if self.error is not None:
            self._traffic.fail(self.error)

    def _free(self) -> None:
        self._traffic.give_back(self._staging)
        self.request = None
        del self._operation

    @staticmethod
    def _refuse(_completed: bool) -> None:  # noqa: FBT001 -- as MPI calls it
        """Refuse to cancel it, as MPI does for collectives."""
        raise MPI.Exception(MPI.ERR_REQUEST)
