# SPDX-License-Identifier: BSD-3-Clause
"""The operations of an open communicator, and the streams they run on.

One stream has the ordinary collectives. Each persistent request has its own, since
ranks may start their requests in different orders.
"""

from __future__ import annotations

import contextlib
from array import array
from typing import TYPE_CHECKING

from mpi4py import MPI

from mpimcast import agreement, bootstrap, failure, flight, progress, teams
from mpimcast.errors import Error
from mpimcast.log import logger
from mpimcast.operation import Staging
from mpimcast.pending import Pending
from mpimcast.requests import Prequest, Request

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import MutableSet

    from mpimcast import _ffi
    from mpimcast.config import Config
    from mpimcast.operation import Operation

_PATIENCE_S = 60.0


class Traffic:
    """What goes on in a communicator that is open.

    Parameters
    ----------
    comm
        The communicator, whose error handler counts.
    private
        Its duplicate, for our own messages.
    opened
        The stream for its ordinary collectives.

    Attributes
    ----------
    team : teams.Team
        What carries the data.
    refused : str
        Why nothing better does; empty if there is nothing.
    comm : MPI.Intracomm
        Whose error handler is called.
    """

    def __init__(
        self,
        comm: MPI.Intracomm,
        private: agreement.Private,
        opened: bootstrap.Opened,
        config: Config,
    ) -> None:
        self.comm = comm
        self.team = opened.team
        self.refused = opened.refused
        self._private = private
        self._config = config
        self._stream = opened.stream
        self._lanes = {opened.stream.channel: opened}
        self._idle: set[int] = set()  # lanes of requests that are no more
        self._closed = False
        self._poisoned: _ffi.Stream | None = None  # the first that has failed
        self._attended = config.progress_thread == "on"
        self._most_in_use = array("i", [0])  # lanes, on any rank, after `leave`
        self._stagings: list[Staging] = []
        self._under_way: set[Pending] = set()
        self._watched: MutableSet[Pending] | None = None  # by the completer

    # ---- operations ----------------------------------------------------------

    def run(self, operation: Operation) -> None:
        """Do an operation."""
        self._check()
        staging = self._take_staging()
        try:
            moves = operation.moves()
            operation.pack(moves, staging)
            request = flight.Request(self._stream, str(operation))
            try:
                self._finish(request, moves)
            except BaseException:
                request.cancel()
                raise
            finally:
                request.free()
            operation.unpack(staging)
        except Error as error:
            self.poison(self._stream)
            self.fail(error)
            raise
        finally:
            self.give_back(staging)

    def _finish(self, request: flight.Request, moves: flight.Moves) -> None:
        """Start an operation, and return when it is over."""
        warned = False
        over = request.start(moves)
        while not over:
            self.idle()
            over = request.wait()
            if not over and not warned:
                warned = self.warn(request)

    def start(self, operation: Operation) -> Request:
        """Start an operation, which needs no other rank."""
        moves = operation.moves(tells=self._attended)
        return Request(self._launch(self._stream, operation, moves))

    def prepare(self, operation: Operation) -> Prequest:
        """Make a request that starts an operation again and again. Collective."""
        # A stream that all ranks have ceased to use has ended on all alike.
        idle = agreement.exchange(
            self._private, sorted(self._idle), self._config.timeout, meanwhile=self.move
        )
        common = set.intersection(*map(set, idle))
        if common:
            lane = self._lanes[min(common)]
        else:
            lane = bootstrap.open_stream(self._private, self._config)
        stream = lane.stream
        self._lanes[stream.channel] = lane
        self._idle.discard(stream.channel)
        moves = operation.moves(tells=self._attended)
        return Prequest(
            lambda: self._launch(stream, operation, moves),
            lambda: self._retire(stream),
        )

    def _retire(self, stream: _ffi.Stream) -> None:
        """Keep the stream of a request that is no more for another one."""
        if not self._closed and not stream.poisoned():
            self._idle.add(stream.channel)

    def _launch(
        self, stream: _ffi.Stream, operation: Operation, moves: flight.Moves
    ) -> Pending:
        """Start an operation, to be completed by whoever first sees it over."""
        if self._closed:
            raise Error("the communicator of this request is closed")
        self._check()
        if self._attended and self._watched is None:
            self._watched = progress.acquire()
        staging = self._take_staging()
        pending = Pending(self, stream, operation, staging)
        self._under_way.add(pending)
        if self._watched is not None:
            self._watched.add(pending)
        try:
            pending.start(moves)
        except BaseException as error:
            self.ended(pending)
            self.give_back(staging)
            if isinstance(error, Error):
                self.poison(stream)
                self.fail(error)
            raise
        return pending

    def _check(self) -> None:
        """Raise if an operation has failed, on whichever stream."""
        if self._poisoned is not None:
            error = flight.poisoned(self._poisoned)
            self.fail(error)
            raise error

    def poison(self, stream: _ffi.Stream) -> None:
        """Take note that an operation of a stream has failed, if one has."""
        if self._poisoned is None and stream.poisoned():
            self._poisoned = stream

    # ---- what they need ------------------------------------------------------

    def idle(self) -> None:
        """Let the MPI library go on with what others wait for."""
        with contextlib.suppress(MPI.Exception):
            self._private.Iprobe()

    def move(self) -> None:
        """Move operations on where no thread does: another rank may wait for that."""
        if not self._attended:
            self.team.endpoint.move()

    def warn(self, request: flight.Request) -> bool:
        """Log whom an operation waits for once it has waited long; tell whether."""
        waiting = request.waiting()
        if waiting.waited_s < _PATIENCE_S:
            return False
        who = "nobody" if waiting.rank is None else f"rank {waiting.rank}"
        what = (
            f"{waiting.missing_chunks} chunks are missing"
            if waiting.entered
            else "not all ranks have entered it"
        )
        logger.warning(
            "%s waits to hear from %s since %d s: %s",
            request.name,
            who,
            waiting.waited_s,
            what,
        )
        return True

    def fail(self, error: BaseException) -> None:
        """Call the communicator's error handler."""
        failure.call_errhandler(self.comm, error)

    def ended(self, pending: Pending) -> None:
        """Take note that an operation is over."""
        self._under_way.discard(pending)
        if self._watched is not None:
            self._watched.discard(pending)

    def give_back(self, staging: Staging) -> None:
        """Take back what an operation was packed into."""
        self._stagings.append(staging)

    def _take_staging(self) -> Staging:
        with contextlib.suppress(IndexError):
            return self._stagings.pop()
        return Staging()

    # ---- all of them ---------------------------------------------------------

    def counters(self) -> Counter[str]:
        """Count what all streams have done."""
        total = self.team.endpoint.counters()
        for lane in self._lanes.values():
            total.update(lane.stream.counters())
        return total

    def poisoned(self) -> bool:
        """Return whether an operation has failed."""
        return any(lane.stream.poisoned() for lane in self._lanes.values())

    def leave(self) -> MPI.Request | None:
        """Begin to wait until no rank needs an answer from this one any more.

        What is under way is done first. A rank that knows of a failure takes part,
        for those that do not, but need not wait itself. If a rank gives no answer,
        all come to know of it, and even to begin a barrier with that rank may block.
        """
        for pending in tuple(self._under_way):
            pending.sleep()
        if any(lane.stream.deserted() for lane in self._lanes.values()):
            return None
        self._most_in_use[0] = len(self._lanes) - len(self._idle)
        with contextlib.suppress(MPI.Exception):
            return self._private.Iallreduce(MPI.IN_PLACE, self._most_in_use, MPI.MAX)
        return None

    def in_use(self) -> bool:
        """Return, alike on all ranks that have left, whether requests are left.

        That is, persistent ones on any of these ranks.
        """
        return self._most_in_use[0] > 1

    def close(self) -> None:
        """Give up what is under way, and close all streams."""
        self._closed = True
        self.comm = MPI.COMM_SELF
        for pending in tuple(self._under_way):
            pending.give_up()
        for lane in self._lanes.values():
            lane.stream.close()
            teams.release(lane.team)
        self._lanes.clear()
        self._stagings.clear()
        if self._watched is not None:
            progress.release()
