# SPDX-License-Identifier: BSD-3-Clause
"""The state of a communicator: its settings, and its streams once it is open.

A state is an attribute of the communicator itself, so all handles of the communicator
share it. It ends when the communicator is freed and no rank has persistent requests
left, but at the latest in ``MPI.Finalize`` or with the program.
"""

from __future__ import annotations

import contextlib
import functools
import math
import os
import time
from array import array
from typing import TYPE_CHECKING

from mpi4py import MPI

from mpimcast._mpi import agreement, error_codes
from mpimcast._mpi.completion import complete
from mpimcast._mpi.entry import Entry
from mpimcast._mpi.objects import Objects
from mpimcast._session import bootstrap, choice, lifetime
from mpimcast._session.inherited import InheritedSettings
from mpimcast._session.introduction import introduced
from mpimcast._session.thresholds import Thresholds
from mpimcast._settings.ignored import warn_of_ignored_variables
from mpimcast._support import log
from mpimcast._support.log import logger
from mpimcast.errors import Error, TransportError
from mpimcast.explanation import Explanation

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mpimcast._mpi.private import Private
    from mpimcast._session.carrier import Carrier
    from mpimcast._session.streams import Streams
    from mpimcast._settings.config import Config
    from mpimcast.stranger import Stranger


class CommunicatorState:
    """The state of one communicator on this rank.

    Attributes
    ----------
    bypass : bool
        Whether the MPI library carries every operation.
    thresholds : Thresholds
        The sizes below which the MPI library carries operations.
    threaded : bool
        Whether mpimcast may carry operations that return a request. This requires that
        all ranks have THREAD_MULTIPLE. False until the ranks have agreed on that.
    """

    def __init__(self, comm: MPI.Intracomm, inherited: InheritedSettings) -> None:
        self._inherited = inherited
        self.bypass = False
        self.threaded = False
        self.thresholds = Thresholds(inherited.config, comm.Get_size())
        self._comm = MPI.Intracomm(comm)
        self._rank = comm.Get_rank()
        self._size = comm.Get_size()
        self._reason = ""  # why `bypass` is True
        self._failure: Error | None = None
        self._entry: Entry | None = None  # of all ranks into this communicator
        self._private: Private | None = None
        self._streams: Streams | None = None
        self._carrier: Carrier | None = None
        # [0]: how many streams are in use: one, and one for each persistent request.
        # [1]: 1 if this rank fails or it is futile to wait for all ranks, else 0.
        # When the request of `leave` completes, each is the maximum over all ranks.
        self._maxima = array("i", [0, 0])
        self._last_counters: Mapping[str, int] | None = None
        self._opening = dict.fromkeys(("open_ns", "open_messages", "open_bytes"), 0)
        self._joins_at_end = False
        self._pid = os.getpid()
        world_rank = MPI.COMM_WORLD.Get_rank()
        log.setup(self.config.log, world_rank)
        if world_rank == 0:
            warn_of_ignored_variables()
        if self._size == 1:
            self._set_bypass("there is only one rank")
        elif inherited.thread_level is not None:
            self._on_agreed(inherited.thread_level)

    # ---- settings ------------------------------------------------------------

    @functools.cached_property
    def objects(self) -> Objects:
        """The object that sends Python objects to all ranks."""
        return Objects(self._comm)

    @property
    def config(self) -> Config:
        """The settings."""
        return self._inherited.config

    def update(self, settings: Mapping[str, object]) -> None:
        """Add a further handle's settings; raise ConfigError if any conflict."""
        self._inherited = self._inherited.updated(settings)
        self.thresholds.config = self.config

    def join_at_end(self) -> None:
        """Let `join` enter this communicator at the end, unless an operation did so.

        Every rank must call this. In a job of several programs, some may not use
        mpimcast, so this does nothing there.
        """
        several = os.environ.get("OMPI_NUM_APP_CTX", "1") != "1"
        several |= bool(MPI.COMM_WORLD.Get_attr(MPI.APPNUM))
        if not several and self._size > 1:
            self._joins_at_end = True
            lifetime.add(self)

    def inherited(self) -> InheritedSettings:
        """Return the settings that derived communicators begin with."""
        return self._inherited

    # ---- what carries an operation -------------------------------------------

    def explain(self, nbytes: int) -> Explanation:
        """Return what carries an operation with blocks of `nbytes`, and why."""
        if self._failure is not None:
            return Explanation("none", str(self._failure))
        if self.bypass:
            return Explanation("mpi", self._reason)
        if self.config.reason_for_mpi:
            return Explanation("mpi", self.config.reason_for_mpi)
        limit = self.thresholds.least_bytes
        if nbytes < limit:
            reason = f"blocks of {nbytes} bytes are below MIN_BYTES={limit}"
            return Explanation("mpi", reason)
        if self._carrier is None:
            return Explanation(
                self.config.transport,
                "to be opened by the first operation with blocks of at least "
                f"MIN_BYTES={limit}",
            )
        return self._carrier.explain(nbytes)

    def way(self, nbytes: int, name: str, *, waits: bool = True) -> tuple[str, str]:
        """Return what carried an operation, and why if the MPI library did.

        Unlike `explain`, this describes a past call of the collective `name`. The
        reason does not mention the size, so that operations can be counted by reason.
        `waits` is False if the call returned a request.
        """
        if self.bypass:
            return "mpi", self._reason
        if nbytes < self.thresholds.least_bytes:
            return "mpi", f"blocks below MIN_BYTES={self.thresholds.least_bytes}"
        if self._carrier is None:
            return "mpi", "no blocking collective had opened a transport"
        if not (waits or self.threaded):
            return "mpi", "some rank's MPI library has less than THREAD_MULTIPLE"
        return self._carrier.way(name, nbytes)

    def carrier(self, nbytes: int) -> Carrier | None:
        """Return what carries blocks of `nbytes`; None if the MPI library does.

        All ranks must call this. The ranks agree on the settings if they have not yet,
        and open the transport for the first blocks that are large enough. All ranks
        decide alike, by `nbytes` and by what they have agreed on.
        """
        self._raise_if_failed()
        try:
            if self._inherited.thread_level is None:
                with self._counted() as private:
                    level = agreement.agree(private, self.config)
                self._inherited = InheritedSettings(self.config, level)
                self._on_agreed(level)
            if self.bypass or nbytes < self.thresholds.least_bytes:
                return None
            if self._streams is None:
                self._open(nbytes)
        except Error as error:
            self._fail(error)
            error_codes.call_errhandler(self._comm, error)
            raise
        except BaseException:
            self._fail(Error("opening this communicator was interrupted"))
            raise
        return self._carrier if nbytes >= self.thresholds.least_bytes else None

    def carrier_if_open(self, nbytes: int) -> Carrier | None:
        """Return what carries a non-blocking operation; None if the MPI library does.

        This waits for no rank, so it does not open the transport. All ranks decide
        alike, since all have called the same collectives in the same order.
        """
        self._raise_if_failed()
        suits = self.threaded and nbytes >= self.thresholds.least_bytes
        return self._carrier if suits else None

    def _raise_if_failed(self) -> None:
        """If opening this communicator has failed, raise the same error again."""
        if self._failure is not None:
            error_codes.call_errhandler(self._comm, self._failure)
            raise self._failure.again()

    def _fail(self, error: Error) -> None:
        """Let operations that come here raise `error`: all but small blocking ones."""
        self._failure = error
        self.thresholds.clear_request_limits()  # so small requests come here, too

    def _on_agreed(self, level: int) -> None:
        """Apply the settings and the least thread level; all ranks agree on both."""
        self.threaded = level >= MPI.THREAD_MULTIPLE
        self.thresholds.set_sizes(shared=True)
        if self.config.reason_for_mpi:
            self._set_bypass(self.config.reason_for_mpi)

    def _set_bypass(self, reason: str) -> None:
        """Leave every operation to the MPI library from now on."""
        self._reason = reason
        self.bypass = True
        self.thresholds.leave_all_to_mpi()

    def _open(self, nbytes: int) -> None:
        """Open the transport, unless blocks of `nbytes` prove too small for it."""
        try:
            with (
                self._counted() as private,
                introduced(private, self.config) as introduction,
            ):
                if not introduction.same_host:
                    self.thresholds.set_sizes(shared=False)
                    if nbytes < self.thresholds.least_bytes:
                        return
                opened = bootstrap.open_stream(introduction)
        except bootstrap.LeftToMpi as why:
            self._set_bypass(str(why))
            return
        except TransportError as error:
            if "mpi" not in self.config.transports:
                raise
            self._set_bypass(f"multicast cannot be opened: {error}")
            if self._rank == 0:
                logger.warning("the MPI library carries all data: %s", self._reason)
            return
        from mpimcast._session.carrier import Carrier
        from mpimcast._session.streams import Streams

        self._streams = Streams(self._comm, private, opened, self.config)
        self._carrier = Carrier(
            self._streams, private, self.config, self.thresholds.express
        )
        self.thresholds.set_sizes(shared=opened.team.transport == "shm")
        if self.threaded:
            self.thresholds.apply_to_requests()
        if self._rank == 0:
            logger.info("opened %s for %d ranks", opened.team.path, self._size)

    @contextlib.contextmanager
    def _counted(self) -> Iterator[Private]:
        """Count time and messages of a step of opening, but not the wait for entry."""
        private = self._need_private()
        begin_ns = time.monotonic_ns()
        yield private
        self._opening["open_ns"] += time.monotonic_ns() - begin_ns
        self._opening["open_messages"] = private.nmessages
        self._opening["open_bytes"] = private.nbytes

    def _need_private(self) -> Private:
        """Return the private duplicate; the first call waits for all ranks to enter."""
        if self._private is None:
            lifetime.watch()
            self._entry = Entry(self._comm)
            self._private = self._entry.wait(self.config)
            if not self._joins_at_end:
                lifetime.add(self)
        return self._private

    def stats(self) -> dict[str, int]:
        """Return all counters: 0 before the opening, the last values after the end."""
        from mpimcast._native import core

        carrier = self._carrier
        counted = self._last_counters if carrier is None else carrier.counters()
        if counted is None:
            counted = dict.fromkeys([*core.counter_names(), *choice.COUNTERS], 0)
        return {**counted, **self.thresholds.tally.counters(), **self._opening}

    def strangers(self) -> list[Stranger]:
        """Return the addresses from which this rank has refused datagrams."""
        return [] if self._carrier is None else self._carrier.strangers()

    # ---- the end: join, depart, leave, then end ------------------------------

    def join(self) -> None:
        """Enter the communicator if it is unused when MPI or the program ends.

        Otherwise ranks that open the communicator would not learn that this rank has
        ended. Do nothing unless `join_at_end` was called.
        """
        unused = self._entry is None and not self.bypass
        if self._joins_at_end and unused and not self._forked():
            self._entry = Entry(self._comm)
            self._private = self._entry.join()

    def depart(self, *, ends: bool) -> None:
        """Tell the ranks that await this rank which operations it no longer starts.

        These are all if the program `ends`, and otherwise all but persistent requests.
        """
        if self._forked():
            return
        if self._private is not None:
            self._private.leaving = True
        if self._streams is not None:
            self._streams.depart(ends=ends)

    def leave(self, *, finishes: bool = True) -> MPI.Request | None:
        """Begin to wait until no rank needs an answer from this rank any more.

        `finishes` is False on a rank that fails: it finishes no operations, but takes
        part for the others. Return None if waiting is needless or impossible.
        """
        if self._private is None or self._forked():
            return None
        streams = self._streams
        nstreams = 0 if streams is None else streams.leave(finishes=finishes)
        if nstreams is None:
            return None
        self._maxima[0], self._maxima[1] = nstreams, not finishes or self._is_futile()
        with contextlib.suppress(MPI.Exception):
            return self._private.Iallreduce(MPI.IN_PLACE, self._maxima, MPI.MAX)
        return None

    def end(self, request: MPI.Request | None, *, clean: bool = False) -> None:
        """Wait for the request that `leave` returned, then close what is open."""
        self._set_bypass(self._reason)
        self.thresholds.express.end()
        if self._forked():
            return
        try:
            self._await(request)
        finally:
            if self._streams is not None and self._carrier is not None:
                self._last_counters = self._carrier.counters()
                self._carrier.close(clean=clean)
                self._streams = self._carrier = None

    def close(self) -> None:
        """Close the state; all ranks call this as they free the communicator.

        Operations under way finish first. If any rank has persistent requests left,
        the state stays open on all ranks until MPI or the program ends.
        """
        self.depart(ends=False)
        request = self.leave()
        self._await(request)
        # A completed request is false. Persistent requests own all streams but one.
        released = request is not None and not request
        if released and self._streams is not None and self._maxima[0] > 1:
            self._streams.comm = self._need_private()  # the user frees the communicator
            lifetime.add(self)
            return
        self.end(request, clean=released and not self._maxima[1])
        if self._forked():
            return
        if self._private is None:
            if self._entry is not None:
                self._entry.give_up(self.config)
        elif released and not self._maxima[1]:
            # Open MPI would crash if messages were still under way on the duplicate.
            self._private.Free()
        self._private = None

    def _await(self, request: MPI.Request | None) -> None:
        """Make progress until the request of `leave` completes or waiting is futile."""
        streams = self._streams

        def is_futile() -> bool:
            if streams is not None:
                streams.make_progress()
            return self._is_futile()

        if request:
            complete(
                request,
                math.inf,
                "closing a communicator",
                buffers=self._maxima,
                is_futile=is_futile,
            )

    def _is_futile(self) -> bool:
        """Return whether it is futile to wait for all ranks: some may never arrive."""
        return self._failure is not None or (
            self._streams is not None
            and (self._streams.poisoned() or self._streams.team.deserted)
        )

    def _forked(self) -> bool:
        return os.getpid() != self._pid
