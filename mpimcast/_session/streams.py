# SPDX-License-Identifier: BSD-3-Clause
"""The operations of an open communicator, and the streams that they run on.

Ordinary collectives run on one stream. Each persistent request has a stream of its own,
since ranks may start their requests in different orders.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from typing import TYPE_CHECKING, Any

from mpi4py import MPI

from mpimcast._mpi import agreement, error_codes, roll
from mpimcast._native import core, express
from mpimcast._native.failure import poison_error
from mpimcast._native.operation import Description, NativeOperation
from mpimcast._session import arrays, bootstrap, tracing
from mpimcast._session.collectives import Allgather, Bcast, NodeBarrier, Staging
from mpimcast._session.introduction import introduced
from mpimcast._session.operations import Operation, Operations
from mpimcast._session.pending import Pending
from mpimcast._session.suspension import Suspension
from mpimcast._session.watch import Watch
from mpimcast._support.log import logger
from mpimcast._support.patience import Patience
from mpimcast.errors import Error
from mpimcast.requests import Prequest, Request

if TYPE_CHECKING:
    from collections.abc import Callable

    from mpimcast._mpi.private import Private
    from mpimcast._native.calls import AnyStream
    from mpimcast._session.collectives import Collective
    from mpimcast._settings.config import Config
    from mpimcast._small import Express

# How long failed ranks wait to learn which operations the others started.
_TELLING_S = 5.0


class Streams:
    """The operations and streams of one open communicator.

    Parameters
    ----------
    comm
        The communicator, whose error handler is called.
    private
        Its private duplicate, for mpimcast's own messages.
    opened
        The stream for its ordinary collectives, with the team.

    Attributes
    ----------
    team : teams.Team
        The team that carries the data.
    refused : str
        Why a better transport was not taken; empty if none is better.
    comm : MPI.Intracomm
        The communicator whose error handler is called.
    members : frozenset
        The processes that share memory with this one; empty if none do.
    tracer : tracing.Tracer
        What traces the streams.
    operations : Operations
        What makes their operations.
    """

    def __init__(
        self,
        comm: MPI.Intracomm,
        private: Private,
        opened: bootstrap.Opened,
        config: Config,
    ) -> None:
        self.comm = comm
        self.team = opened.team
        self.refused = opened.refused
        self._private = private
        self._config = config
        self._stream = opened.stream
        self._express: Express | None = None
        self.members = arrays.members(comm, self._stream.layout)
        self._opened: dict[int, bootstrap.Opened] = {}
        self.tracer = tracing.opened(comm, private, config, opened.close)
        self._add(opened)
        self._idle: set[int] = set()  # channels of freed requests
        self._closed = False
        self._suspension = Suspension()
        self._poisoned: AnyStream | None = None  # the first stream that failed
        self._attended = config.progress_thread == "on"
        self._stagings: list[Staging] = []
        self._under_way: set[Pending] = set()
        self._watch = Watch()
        wake, attended = self._watch.rouse, self._attended
        self.operations = Operations(opened.cut_bytes, wake, attended=attended)

    # ---- operations ----------------------------------------------------------

    def run(self, collective: Collective) -> None:
        """Run an operation, and return when it has ended."""
        self._check()
        staging = self._take_staging()
        try:
            description = collective.describe()
            collective.pack(description, staging)
            native = self.operations.make(self._stream, collective)
            self._drive(native, description, lambda: native.start(description))
            self._suspension.watch(self._stream)
            collective.unpack(staging)
        except Error as error:
            self._end_badly(error)
            raise
        finally:
            self.give_back(staging)

    def node_barrier(self) -> None:
        """Wait until all ranks of this node have called this, if they share memory."""
        if self._stream.layout is not None and not (
            self._express is not None and self._express.run_node_barrier()
        ):
            self.run(NodeBarrier())

    def share(self, nbytes: int, what: str) -> memoryview | None:
        """Return new memory that the ranks of each node share. Collective.

        Return None if no ranks share memory, or for no bytes. `what` is the array in
        words, equal on all ranks.
        """
        layout = self._stream.layout
        making = arrays.Making(self._private, self._config, layout, self.members)
        return making.make(nbytes, what, self.make_progress)

    def _drive(
        self, native: Operation, description: Description, begin: Callable[[], bool]
    ) -> None:
        """Begin an operation, wait until it has ended, and free it."""
        patience = self.patience()
        try:
            over = begin()
            while not over:
                self.idle(native)
                over = native.wait()
                if not over and patience.take_warning():
                    self.warn(native)
        except Error as error:
            native.cancel()
            raise self.tell_apart(error, native, description) from None
        except BaseException:
            native.cancel()
            raise
        finally:
            native.free()

    def begin_express(self, way: Express) -> None:
        """Let the express way go through the stream for ordinary collectives."""
        calls = (self._finish, self._watch_suspension)
        express.begin(way, self._stream, self.members, MPI.IN_PLACE, calls)
        self._express = way

    def _finish(self, address: int, name: str, *arguments: Any) -> None:
        """Wait for an operation that was started on the express way."""
        collective: Collective = NodeBarrier()
        if name == "Allgather":
            collective = Allgather(self.comm, *arguments)
        elif name == "Bcast":
            collective = Bcast(self.comm, *arguments)
        request = express.place_of(self._stream, address)
        native = NativeOperation(self._stream, str(collective), request)
        try:
            self._drive(native, collective.describe(), native.wait)
        except Error as error:
            self._end_badly(error)
            raise

    def _watch_suspension(self) -> bool:
        """Log if multicast was suspended or resumed; return whether it is suspended."""
        self._suspension.watch(self._stream)
        return self._suspension.reason is not None

    def _end_badly(self, error: Error) -> None:
        """Record the failure of a blocking operation, and call the error handler."""
        self.poison(self._stream)
        self.fail(error)

    def start(self, collective: Collective) -> Request:
        """Start an operation, without waiting for any other rank."""
        description = collective.describe(notifies=self._attended)
        return Request(self._launch(self._stream, collective, description))

    def prepare(self, collective: Collective) -> Prequest | None:
        """Make a persistent request for an operation. Collective.

        Return None if the memory for its stream is taken: the MPI library carries it.
        """
        # On a stream that is idle on all ranks, all have ended the same operations.
        mine, limit_s = sorted(self._idle), self._config.timeout
        idle = agreement.exchange(
            self._private, mine, limit_s, meanwhile=self.make_progress
        )
        common = set.intersection(*map(set, idle))
        if common:
            opened = self._opened[min(common)]
        else:
            try:
                with introduced(self._private, self._config) as introduction:
                    opened = bootstrap.open_stream(introduction)
            except bootstrap.LeftToMpi:
                return None
        stream = self._add(opened)
        if collective.target.memory is not None and stream.layout is None:
            self._retire(stream)
            return None
        self._idle.discard(stream.channel)
        description = collective.describe(notifies=self._attended)
        return Prequest(
            lambda: self._launch(stream, collective, description),
            lambda: self._retire(stream),
        )

    def _add(self, opened: bootstrap.Opened) -> AnyStream:
        """Use a stream, which may be new; return it."""
        stream = opened.stream
        if stream.channel not in self._opened:
            self.tracer.follow(stream)
        self._opened[stream.channel] = opened
        return stream

    def _retire(self, stream: AnyStream) -> None:
        """Keep the stream of a freed request for another request."""
        if not self._closed and not stream.poisoned():
            self._idle.add(stream.channel)

    def _launch(
        self, stream: AnyStream, collective: Collective, description: Description
    ) -> Pending:
        """Start an operation; the first thread that notices its end completes it."""
        if self._closed:
            raise Error("the communicator of this request is closed")
        self._check()
        staging = self._take_staging()
        pending = Pending(self, stream, collective, description, staging)
        self._under_way.add(pending)
        if self._attended:
            self._watch.add(pending)
        try:
            pending.start()
        except BaseException as error:
            self.ended(pending)
            self.give_back(staging)
            if isinstance(error, Error):
                self.poison(stream)
                self.fail(error)
            raise
        return pending

    def _check(self) -> None:
        """Raise if an operation has failed on any stream."""
        if self._poisoned is not None:
            self.fail(error := poison_error(self._poisoned))
            raise error

    def poison(self, stream: AnyStream) -> None:
        """Record that a stream has failed, if it has."""
        if self._poisoned is None and stream.poisoned():
            self._poisoned = stream
            if self._express is not None:
                self._express.end()  # the ordinary way says why it is unusable
            self.team.deserted |= stream.deserted()
            self.tracer.write("failure")

    # ---- services for operations ---------------------------------------------

    def idle(self, native: Operation) -> None:
        """Let the MPI library make progress, and answer ranks that await this one."""
        self._private.doing = native.name
        self._private.roll.attend()
        roll.hear_all()
        self._private.doing = ""
        for pending in self._under_way.copy():
            pending.help_on(attended=self._attended)

    def make_progress(self) -> None:
        """Make progress if no thread does, since another rank may wait for this one."""
        if not self._attended:
            self._stream.make_progress()

    def patience(self) -> Patience:
        """Return the patience of a wait that begins now, which tells when to log it."""
        return Patience(self._config.warn_after)

    def warn(self, native: Operation) -> None:
        """Log which rank a long operation waits for."""
        waiting = native.waiting()
        logger.warning(
            "%s, operation %d of its communicator, has waited %.3g s for %s",
            native.name,
            waiting.epoch,
            waiting.waited_s,
            waiting.for_whom(),
        )

    def tell_apart(
        self, error: Error, native: Operation, description: Description
    ) -> Error:
        """Return an error that names the ranks which started another operation.

        Return `error` itself if it has another cause. In a disagreement all ranks fail,
        and tell each other what they started.
        """
        if native.mismatch is None:
            return error
        topic = f"operation {native.channel:x} {error.epoch}"
        limit_s = min(self._config.timeout, _TELLING_S)
        return native.tell_apart(
            error, self._private.roll.gather(topic, description.fact(), limit_s)
        )

    def fail(self, error: BaseException) -> None:
        """Call the communicator's error handler."""
        error_codes.call_errhandler(self.comm, error)

    def ended(self, pending: Pending) -> None:
        """Record that an operation has ended."""
        self._suspension.watch(pending.stream)
        self._under_way.discard(pending)
        self._watch.discard(pending)

    def give_back(self, staging: Staging) -> None:
        """Take back an operation's staging memory."""
        self._stagings.append(staging)

    def _take_staging(self) -> Staging:
        with contextlib.suppress(IndexError):
            return self._stagings.pop()
        return Staging()

    def path(self) -> str:
        """Return, in words for people, the path that data takes."""
        return self._suspension.path(self.team.path)

    # ---- all streams ---------------------------------------------------------

    def counters(self) -> Counter[str]:
        """Return the sums of all streams' and endpoints' counters."""
        total = Counter(dict.fromkeys(core.counter_names(), 0))
        for endpoint in {opened.team.endpoint for opened in self._opened.values()}:
            if endpoint is not None:
                total.update(endpoint.counters())
        for opened in self._opened.values():
            total.update(opened.stream.counters())
        return total

    def poisoned(self) -> bool:
        """Return whether an operation has failed."""
        return any(opened.stream.poisoned() for opened in self._opened.values())

    def depart(self, *, ends: bool) -> None:
        """Tell the other ranks that this rank will start nothing more.

        Persistent requests may still be started unless the program `ends`.
        """
        self._stream.leave()
        if ends:
            for opened in self._opened.values():
                opened.stream.leave()

    def leave(self, *, finishes: bool) -> int | None:
        """Finish what is under way, if so told; return how many streams are in use.

        Return None if some rank no longer answers, here or on another communicator of
        the team: all ranks learn of that, since to start a barrier with it may block.
        """
        for pending in self._under_way.copy() if finishes else ():
            pending.sleep()
        if any(opened.stream.deserted() for opened in self._opened.values()):
            self.team.deserted = True
        if self.team.deserted:
            return None
        return len(self._opened) - len(self._idle)

    def close(self, *, clean: bool) -> None:
        """Give up what is under way, and close all streams.

        In a `clean` end no rank uses them any more, and their memory is free.
        """
        self._closed = True
        self.comm = MPI.COMM_SELF
        for pending in self._under_way.copy():
            pending.give_up()
        self._watch.close()
        for opened in self._opened.values():
            opened.close(clean=clean)
        self._opened.clear()
        self._stagings.clear()
        self.tracer.write("close")
