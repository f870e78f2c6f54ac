# SPDX-License-Identifier: BSD-3-Clause
"""What hangs on a communicator: its settings, and its stream once it is open.

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

from mpimcast import agreement, bootstrap, lifetime, log, teams
from mpimcast.config import Config, shown
from mpimcast.errors import ConfigError, Error, TransportError
from mpimcast.log import logger
from mpimcast.operation import Staging

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mpimcast import flight
    from mpimcast.operation import Operation

_PATIENCE_S = 60.0


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
    """What a communicator hands on to those derived from it."""

    def __init__(self, config: Config, *, agreed: bool) -> None:
        self.config = config
        self.agreed = agreed


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
    """

    def __init__(self, comm: MPI.Intracomm, heritage: Heritage) -> None:
        self.config = heritage.config
        self.small_bytes = self.small_block_bytes = 0
        self.bypass = False
        self._comm = MPI.Intracomm(comm)
        self._rank = comm.Get_rank()
        self._size = comm.Get_size()
        self._agreed = heritage.agreed
        self._reason = ""
        self._failure: Error | None = None
        self._entry: agreement.Entry | None = None
        self._private: MPI.Intracomm | None = None
        self._opened: bootstrap.Opened | None = None
        self._open_ns = 0
        self._staging = Staging()
        self._pid = os.getpid()
        log.setup(self.config.log, MPI.COMM_WORLD.Get_rank())
        if self._size == 1:
            self._settle("there is one rank only")
        elif self._agreed:
            self._on_agreed()

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
            if fixed or self._agreed:
                why = "all ranks have agreed on" if self._agreed else "was given"
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
        return Heritage(self.config, agreed=self._agreed)

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
        if self._opened is None:
            return Explanation(
                self.config.transport,
                "to be opened by the first operation with blocks of at least "
                f"MIN_BYTES={limit}",
            )
        team, refused = self._opened.team, self._opened.refused
        return Explanation(
            team.transport, f"{team.path} ({refused})" if refused else team.path
        )

    def takes(self, nbytes: int) -> bool:
        """Decide whether an operation with blocks of `nbytes` is ours.

        Collective: agrees on settings and opens the transport where that is due.
        All ranks decide alike, by `nbytes` and what they agreed on.
        """
        if self._failure is not None:
            raise self._failure.again()
        try:
            if not self._agreed:
                agreement.agree(self._need_private(), self.config)
                self._agreed = True
                self._on_agreed()
            if self.bypass or nbytes < self.config.min_bytes:
                return False
            if self._opened is None:
                self._open()
        except Error as error:
            self._failure = error
            raise
        except BaseException:
            self._failure = Error("this communicator's opening was interrupted")
            raise
        return not self.bypass

    def _on_agreed(self) -> None:
        self.small_block_bytes = self.config.min_bytes
        self.small_bytes = self.config.min_bytes * self._size
        if self.config.transport == "mpi":
            self._settle("TRANSPORT=mpi")

    def _settle(self, reason: str) -> None:
        self._reason = reason
        self.bypass = True

    def _open(self) -> None:
        private = self._need_private()
        begin_ns = time.monotonic_ns()
        try:
            self._opened = bootstrap.open_stream(private, self.config)
        except TransportError as error:
            if self.config.transport != "auto":
                raise
            self._settle(f"multicast cannot be opened: {error}")
            if self._rank == 0:
                logger.warning("the MPI library carries all data: %s", self._reason)
            return
        self._open_ns = time.monotonic_ns() - begin_ns
        lifetime.add(self)
        if self._rank == 0:
            logger.info("opened %s for %d ranks", self._opened.team.path, self._size)

    def _need_private(self) -> MPI.Intracomm:
        if self._private is None:
            self._entry = agreement.Entry(self._comm)
            self._private = self._entry.wait(self.config)
        return self._private

    # ---- operations ----------------------------------------------------------

    def run(self, operation: Operation) -> None:
        """Do an operation that is ours."""
        from mpimcast import flight

        assert self._opened is not None  # noqa: S101 -- takes() was True
        moves = operation.moves()
        operation.pack(moves, self._staging)
        request = flight.Request(self._opened.stream, str(operation))
        try:
            self._finish(request, moves)
        except BaseException:
            request.cancel()
            raise
        finally:
            request.free()
        operation.unpack(self._staging)

    def _finish(self, request: flight.Request, moves: flight.Moves) -> None:
        """Start an operation, and return when it is over."""
        warned = False
        over = request.start(moves)
        while not over:
            # Lets the MPI library go on with what others wait for.
            with contextlib.suppress(MPI.Exception):
                self._need_private().Iprobe()
            over = request.wait()
            if not over and not warned:
                warned = self._warn(request)

    def _warn(self, request: flight.Request) -> bool:
        """Log whom an operation waits for, once it has waited long."""
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

    def stats(self) -> dict[str, int]:
        """Return all counters; zeros while nothing is open."""
        from mpimcast import _ffi

        if self._opened is None:
            return dict.fromkeys(_ffi.counter_names(), 0)
        return {**self._opened.stream.counters(), "open_ns": self._open_ns}

    # ---- the end -------------------------------------------------------------

    def leave(self) -> MPI.Request | None:
        """Begin to wait until no rank needs an answer from this one any more.

        A rank that knows of a failure takes part, for those that do not, but need
        not wait itself. If a rank gives no answer, all come to know of it, and even
        to begin a barrier with that rank may block.
        """
        if self._opened is None or self._forked() or self._opened.stream.deserted():
            return None
        with contextlib.suppress(MPI.Exception):
            return self._need_private().Ibarrier()
        return None

    def end(self, request: MPI.Request | None) -> None:
        """Wait for what `leave` began, then close what is open."""
        self.bypass = True
        if self._opened is None or self._forked():
            return
        try:
            if request is not None:
                agreement.complete(
                    request, math.inf, "closing a communicator", vain=self._vain
                )
        finally:
            self._opened.stream.close()
            teams.release(self._opened.team)
            self._opened = None

    def close(self) -> None:
        """End with the communicator, which all ranks free."""
        request = self.leave()
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

    def _vain(self) -> bool:
        """Return whether some rank may be gone or not come."""
        return self._failure is not None or (
            self._opened is not None and self._opened.stream.poisoned()
        )

    def _forked(self) -> bool:
        return os.getpid() != self._pid
