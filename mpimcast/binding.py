# SPDX-License-Identifier: BSD-3-Clause
"""What hangs on a communicator: its settings, and its traffic once it is open.

A binding is an attribute of the communicator itself, so all handles of it share
one. It ends with the communicator, with ``MPI.Finalize`` or with the program,
whichever comes first.
"""

from __future__ import annotations

import contextlib
import math
import os
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from mpi4py import MPI

from mpimcast import agreement, bootstrap, failure, lifetime, log
from mpimcast.config import Config, shown
from mpimcast.errors import ConfigError, Error, TransportError
from mpimcast.log import logger

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mpimcast.traffic import Traffic


@dataclass(frozen=True)
class Explanation:
    """Which way an operation takes, and why.

    Attributes
    ----------
    path : str
        "verbs", "udp" or "mpi"; "auto" until the first operation chooses; "none" if
        operations fail.
    reason : str
        One line.
    """

    path: str
    reason: str

    def __str__(self) -> str:
        """Return one line."""
        return f"{self.path}: {self.reason}"


class Heritage:
    """What a communicator hands on to those derived from it.

    Attributes
    ----------
    config : Config
        The settings.
    level : int or None
        The least thread level of all ranks; None until they have agreed on that
        and on the settings.
    """

    def __init__(self, config: Config, level: int | None = None) -> None:
        self.config = config
        self.level = level


class Binding:
    """The state of one communicator on this rank.

    Attributes
    ----------
    bypass : bool
        Whether every operation is the MPI library's.
    small_bytes : int
        Places for all ranks' blocks below this are the MPI library's too; 0 until
        all ranks have agreed on it.
    small_block_bytes : int
        The same of one block.
    threaded : bool
        Whether all ranks' MPI libraries let any thread call; False until all ranks
        have agreed on it. Only then are requests ours.
    """

    def __init__(self, comm: MPI.Intracomm, heritage: Heritage) -> None:
        self.config = heritage.config
        self.small_bytes = self.small_block_bytes = 0
        self.bypass = False
        self.threaded = False
        self._comm = MPI.Intracomm(comm)
        self._rank = comm.Get_rank()
        self._size = comm.Get_size()
        self._level = heritage.level
        self._reason = ""
        self._failure: Error | None = None
        self._entry: agreement.Entry | None = None
        self._private: agreement.Private | None = None
        self._traffic: Traffic | None = None
        self._opening = dict.fromkeys(("open_ns", "open_messages", "open_bytes"), 0)
        self._pid = os.getpid()
        log.setup(self.config.log, MPI.COMM_WORLD.Get_rank())
        if self._size == 1:
            self._settle("there is one rank only")
        elif self._level is not None:
            self._on_agreed(self._level)

    # ---- settings ------------------------------------------------------------

    def update(self, settings: Mapping[str, object]) -> None:
        """Take the keywords of a further handle; they must not conflict.

        Settings that nobody gave as keywords can be given until all ranks have
        agreed on them.
        """
        wanted = Config.read(settings)
        changes: dict[str, Any] = {}
        for name in settings:
            old, new = getattr(self.config, name), getattr(wanted, name)
            if settings[name] is None or old == new:
                continue
            fixed = self.config.sources.get(name) == "argument"
            if fixed or self._level is not None:
                why = "was given" if self._level is None else "all ranks have agreed on"
                raise ConfigError(
                    f"{name}={shown(name, new)} conflicts with {shown(name, old)}, "
                    f"which {why} for this communicator; duplicate the communicator "
                    "of the MPI library to have other settings"
                )
            changes[name] = new
        given = [name for name in settings if settings[name] is not None]
        sources = {**self.config.sources, **dict.fromkeys(given, "argument")}
        self.config = replace(self.config, **changes, sources=sources)

    def heritage(self) -> Heritage:
        """Return what derived communicators start with."""
        return Heritage(self.config, self._level)

    # ---- the way operations take ---------------------------------------------

    def explain(self, nbytes: int) -> Explanation:
        """Say which way an operation with blocks of `nbytes` takes."""
        if self._failure is not None:
            return Explanation("none", str(self._failure))
        if self.bypass:
            return Explanation("mpi", self._reason)
        if self.config.transport == "mpi":
            return Explanation("mpi", "TRANSPORT=mpi")
        limit = self.config.min_bytes
        if nbytes < limit:
            return Explanation(
                "mpi", f"blocks of {nbytes} bytes are below MIN_BYTES={limit}"
            )
        if self._traffic is None:
            return Explanation(
                self.config.transport,
                "to be opened by the first operation with blocks of at least "
                f"MIN_BYTES={limit}",
            )
        team, refused = self._traffic.team, self._traffic.refused
        return Explanation(
            team.transport, f"{team.path} ({refused})" if refused else team.path
        )

    def carrier(self, nbytes: int) -> Traffic | None:
        """Return what carries an operation with blocks of `nbytes`, if it is ours.

        Collective: agrees on settings and opens the transport where that is due.
        All ranks decide alike, by `nbytes` and what they agreed on.
        """
        self._check()
        try:
            if self._level is None:
                with self._counted() as private:
                    self._level = agreement.agree(private, self.config)
                self._on_agreed(self._level)
            if self.bypass or nbytes < self.config.min_bytes:
                return None
            if self._traffic is None:
                self._open()
        except Error as error:
            self._failure = error
            failure.call_errhandler(self._comm, error)
            raise
        except BaseException:
            self._failure = Error("this communicator's opening was interrupted")
            raise
        return self._traffic

    def open_carrier(self, nbytes: int) -> Traffic | None:
        """Return what carries such an operation if nobody waits for it. Local.

        Nothing is opened then. All ranks decide alike, by what they have done in
        the same order.
        """
        self._check()
        return (
            self._traffic if self.threaded and nbytes >= self.config.min_bytes else None
        )

    def _check(self) -> None:
        """Raise, again, why the communicator could not be opened, if so."""
        if self._failure is not None:
            failure.call_errhandler(self._comm, self._failure)
            raise self._failure.again()

    def _on_agreed(self, level: int) -> None:
        self.threaded = level >= MPI.THREAD_MULTIPLE
        self.small_block_bytes = self.config.min_bytes
        self.small_bytes = self.config.min_bytes * self._size
        if self.config.transport == "mpi":
            self._settle("TRANSPORT=mpi")

    def _settle(self, reason: str) -> None:
        self._reason = reason
        self.bypass = True

    def _open(self) -> None:
        try:
            with self._counted() as private:
                opened = bootstrap.open_stream(private, self.config)
        except TransportError as error:
            if self.config.transport != "auto":
                raise
            self._settle(f"multicast cannot be opened: {error}")
            if self._rank == 0:
                logger.warning("the MPI library carries all data: %s", self._reason)
            return
        from mpimcast.traffic import Traffic

        self._traffic = Traffic(self._comm, private, opened, self.config)
        lifetime.add(self)
        if self._rank == 0:
            logger.info("opened %s for %d ranks", opened.team.path, self._size)

    @contextlib.contextmanager
    def _counted(self) -> Iterator[agreement.Private]:
        """Count what a part of opening takes, once all ranks have entered."""
        private = self._need_private()
        begin_ns = time.monotonic_ns()
        yield private
        self._opening["open_ns"] += time.monotonic_ns() - begin_ns
        self._opening["open_messages"] = private.nmessages
        self._opening["open_bytes"] = private.nbytes

    def _need_private(self) -> agreement.Private:
        if self._private is None:
            self._entry = agreement.Entry(self._comm)
            self._private = self._entry.wait(self.config)
        return self._private

    def stats(self) -> dict[str, int]:
        """Return all counters; zeros while nothing is open."""
        from mpimcast import _ffi

        if self._traffic is None:
            return dict.fromkeys([*_ffi.counter_names(), *self._opening], 0)
        return {**self._traffic.counters(), **self._opening}

    # ---- the end -------------------------------------------------------------

    def leave(self) -> MPI.Request | None:
        """Begin to wait until no rank needs an answer from this one any more."""
        if self._traffic is None or self._forked():
            return None
        return self._traffic.leave()

    def end(self, request: MPI.Request | None) -> None:
        """Wait for what `leave` began, then close what is open."""
        self.bypass = True
        if self._traffic is None or self._forked():
            return
        try:
            self._await(request)
        finally:
            self._traffic.close()
            self._traffic = None

    def close(self) -> None:
        """End with the communicator, which all ranks free.

        What is under way is done first. If persistent requests are left on any
        rank, which may be started even then, all ranks stay open to the end.
        """
        request = self.leave()
        self._await(request)
        left = request is not None and not request
        if left and self._traffic is not None and self._traffic.in_use():
            self._traffic.comm = self._need_private()
            lifetime.add(self)
            return
        self.end(request)
        if self._forked():
            return
        if self._private is None:
            if self._entry is not None:
                self._entry.give_up(self.config)
        elif not request and self._failure is None:
            # Nothing is under way on it: freed then, Open MPI would crash.
            self._private.Free()
        self._private = None

    def _await(self, request: MPI.Request | None) -> None:
        traffic = self._traffic

        def vain() -> bool:
            if traffic is not None:
                traffic.move()
            return self._vain()

        if request:
            agreement.complete(
                request,
                math.inf,
                "closing a communicator",
                buffers=traffic,
                vain=vain,
            )

    def _vain(self) -> bool:
        """Return whether some rank may be gone or not come."""
        return self._failure is not None or (
            self._traffic is not None and self._traffic.poisoned()
        )

    def _forked(self) -> bool:
        return os.getpid() != self._pid
