# SPDX-License-Identifier: BSD-3-Clause
"""Pairs: two ranks that send messages to each other, each way on a stream of its own.

A message is a Bcast of the pair's team, with the sender as its root, so all that the
engine does for collectives it does for messages: it finds and repairs losses, keeps to
a window, and notices a dead peer.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import os
from array import array
from collections import Counter
from typing import TYPE_CHECKING, Any

from mpi4py import MPI

from mpimcast._mpi.agreement import agree
from mpimcast._mpi.completion import complete
from mpimcast._mpi.entry import Entry
from mpimcast._native.operation import NativeOperation
from mpimcast._native.words import Words
from mpimcast._session import bootstrap, lifetime
from mpimcast._session.collectives import Bcast
from mpimcast._session.introduction import introduced
from mpimcast._session.streams import Streams
from mpimcast._support.shared_memory import PRIVATE
from mpimcast.errors import ConfigError, Error

if TYPE_CHECKING:
    from mpimcast._mpi.private import Private
    from mpimcast._native.operation import Description
    from mpimcast._session.operations import Operation
    from mpimcast._settings.config import Config
    from mpimcast.requests import Request

# What the sender of a message may decide.
_RELIABILITIES = ("repeat", "code")

# The transports that can carry messages, in the order in which to try them.
_TRANSPORTS = ("verbs", "udp")


class Message(Bcast):
    """A message with its buffer, on either rank of a pair.

    Parameters
    ----------
    comm
        The communicator of the two ranks.
    buf
        The data on the sender, the place for it on the receiver.
    root
        The sender.
    peer
        The other rank, as programs number it.
    reliability
        How its sender has lost chunks made up for; None for the pair's setting.
    """

    def __init__(
        self,
        comm: MPI.Intracomm,
        buf: Any,
        root: int,
        peer: int,
        reliability: str | None = None,
    ) -> None:
        super().__init__(comm, buf, root)
        self._reliability = reliability
        self._direction = f"{'to' if self._sends else 'from'} rank {peer}"
        # Other ranks of a node do not take part, even in memory that they share.
        self.target = PRIVATE

    def describe(self, *, notifies: bool = False) -> Description:
        """Return the message's description for C."""
        description = super().describe(notifies=notifies)
        if self._reliability is not None:
            description.decide(self._reliability)
        return description

    def __str__(self) -> str:
        """Return the message's description for messages to people."""
        return f"a message of {self.nbytes} bytes {self._direction}"


class _Direction(Streams):
    """The stream of the messages from one rank of a pair to the other."""

    def own_counters(self) -> Counter[str]:
        """Return the counters of the stream alone."""
        return self._stream.counters()

    def tell_apart(
        self, error: Error, native: Operation, description: Description
    ) -> Error:
        """Return an error that names both sizes if sender and receiver differ in them.

        Return `error` itself if it has another cause.
        """
        failure = native.mismatch
        if failure is None or not isinstance(native, NativeOperation):
            return super().tell_apart(error, native, description)
        own, root = int(description.c.block_bytes), int(description.c.root)
        other = int(failure.block_bytes_min + failure.block_bytes_max) - own
        sends = root == self._stream.rank
        sent, room = (own, other) if sends else (other, own)
        number = self._stream.words.number
        reason = (
            f"rank {number(root)} sends {sent} bytes, but rank {number(1 - root)} "
            f"receives {room}"
        )
        reason += "; it would be truncated" if sent > room else ""
        return native.disagree(f"{reason}; both must pass the same size", ())


class PairState:
    """The state of a pair on one of its ranks, from its opening to its end.

    Parameters
    ----------
    comm
        The communicator of the two ranks, which the state frees.
    numbers
        The numbers of the two ranks, by which the program knows them.
    config
        The settings.

    Attributes
    ----------
    numbers : tuple of int
        As given.
    rank : int
        This rank's number in `comm`: 0 or 1.
    """

    def __init__(
        self, comm: MPI.Intracomm, numbers: tuple[int, int], config: Config
    ) -> None:
        self.numbers = numbers
        self.rank = comm.Get_rank()
        self._comm = comm
        self._config = _narrowed(config)
        self._private: Private | None = None
        self._directions: list[_Direction] = []  # by sender
        self._threaded = False
        self._last_counters: Counter[str] = Counter()
        # 1 if this rank fails or the other one is gone; when the request of `leave`
        # completes, it is the maximum of both ranks.
        self._futile = array("i", [0])
        self._pid = os.getpid()

    # ---- opening -------------------------------------------------------------

    def open(self) -> None:
        """Open the streams of both directions, on both ranks or on none."""
        lifetime.watch()
        private = Entry(self._comm).wait(self._config)
        self._private = private
        level = agree(private, self._config)
        self._threaded = level >= MPI.THREAD_MULTIPLE
        with contextlib.ExitStack() as undo:
            undo.callback(self._close_directions, clean=False)
            for _ in self.numbers:
                with introduced(
                    private, self._config, shares=False, pair=True
                ) as introduction:
                    opened = bootstrap.open_stream(introduction)
                opened.stream.words = self._words()
                self._directions.append(
                    _Direction(self._comm, private, opened, self._config)
                )
            self._measure()
            undo.pop_all()
        lifetime.add(self)

    def _measure(self) -> None:
        """Exchange empty messages, by which the engine learns the round trip.

        Over a long link, what is not known to be on its way would be asked for again.
        """
        for sender, direction in enumerate(self._directions):
            direction.run(self._message(bytearray(), sender))

    def _words(self) -> Words:
        low, high = self.numbers
        return Words(
            f"the pair of ranks {low} and {high}",
            "Close it and connect again",
            self.numbers,
        )

    @property
    def peer(self) -> int:
        """The other rank's number."""
        return self.numbers[1 - self.rank]

    # ---- messages ------------------------------------------------------------

    def send(self, buf: Any, reliability: str | None) -> None:
        """Send a message, and return when the buffer is the program's again."""
        direction = self._open_direction(self.rank)
        direction.run(self._message(buf, self.rank, reliability))

    def receive(self, buf: Any) -> None:
        """Receive the next message."""
        self._open_direction(1 - self.rank).run(self._message(buf, 1 - self.rank))

    def start_sending(self, buf: Any, reliability: str | None) -> Request:
        """Start to send a message, without waiting for the other rank."""
        return self._start(buf, self.rank, reliability)

    def start_receiving(self, buf: Any) -> Request:
        """Start to receive the next message, without waiting for the other rank."""
        return self._start(buf, 1 - self.rank)

    def _start(self, buf: Any, sender: int, reliability: str | None = None) -> Request:
        direction = self._open_direction(sender)
        if not self._threaded:
            raise Error(
                "Isend and Irecv need MPI.THREAD_MULTIPLE, which the MPI library of "
                f"rank {self.numbers[0]} or {self.numbers[1]} does not provide"
            )
        return direction.start(self._message(buf, sender, reliability))

    def _message(
        self, buf: Any, sender: int, reliability: str | None = None
    ) -> Message:
        if reliability is not None:
            self._check_reliability(reliability)
        return Message(self._comm, buf, sender, self.peer, reliability)

    def _check_reliability(self, reliability: str) -> None:
        """Raise ConfigError unless messages of this pair may have `reliability`."""
        if reliability not in _RELIABILITIES:
            raise ConfigError(
                f"reliability={reliability!r}, but a message has one of "
                f"{', '.join(map(repr, _RELIABILITIES))}"
            )
        if reliability == "code" and not self._config.may_code:
            raise ConfigError(
                "reliability='code' needs a pair that was connected with "
                "reliability='code' or 'auto': both ranks keep room for parity then"
            )

    def _open_direction(self, sender: int) -> _Direction:
        if not self._directions or self._forked():
            raise Error(f"{self._words().whole} is closed here")
        return self._directions[sender]

    # ---- reports -------------------------------------------------------------

    def path(self) -> str:
        """Return, in words for people, the path that messages take; "" if closed."""
        return self._directions[0].path() if self._directions else ""

    def counters(self) -> Counter[str]:
        """Return the counters of both directions: the last ones after the end."""
        if not self._directions:
            return self._last_counters
        first, second = self._directions
        total = first.counters()  # with those of the endpoint
        total.update(second.own_counters())
        return total

    # ---- the end: depart, leave, then end ------------------------------------

    def join(self) -> None:
        """Do nothing: both ranks have entered."""

    def depart(self, *, ends: bool) -> None:
        """Tell the other rank that this rank starts nothing more."""
        if self._forked():
            return
        if self._private is not None:
            self._private.leaving = True
        for direction in self._directions:
            direction.depart(ends=ends)

    def leave(self, *, finishes: bool = True) -> MPI.Request | None:
        """Begin to wait until the other rank needs no answer from this one any more.

        `finishes` is False on a rank that fails: it finishes no messages. Return None
        if waiting is needless or impossible.
        """
        if self._private is None or self._forked():
            return None
        left = [each.leave(finishes=finishes) for each in self._directions]
        if None in left:
            return None
        self._futile[0] = not finishes or self._is_futile()
        with contextlib.suppress(MPI.Exception):
            return self._private.Iallreduce(MPI.IN_PLACE, self._futile, MPI.MAX)
        return None

    def end(self, request: MPI.Request | None) -> None:
        """Wait for the request that `leave` returned, then close the streams."""
        if self._forked():
            return
        try:
            if request:
                complete(
                    request,
                    math.inf,
                    "closing a pair",
                    buffers=self._futile,
                    is_futile=self._makes_futile_progress,
                )
        finally:
            self._last_counters = self.counters()
            released = request is not None and not request
            self._close_directions(clean=released and not self._futile[0])

    def close(self) -> None:
        """Close the pair, once both ranks have finished their messages."""
        if not self._directions or self._forked():
            return
        lifetime.remove(self)
        self.depart(ends=True)
        request = self.leave()
        self.end(request)
        # A completed request is false.
        released = request is not None and not request
        if self._private is not None and released and not self._futile[0]:
            # Open MPI would crash if messages were still under way there.
            self._private.Free()
            self._comm.Free()
        self._private = None

    def _close_directions(self, *, clean: bool) -> None:
        while self._directions:
            self._directions.pop().close(clean=clean)

    def _makes_futile_progress(self) -> bool:
        """Make progress; return whether it is futile to wait for the other rank."""
        for direction in self._directions:
            direction.make_progress()
        return self._is_futile()

    def _is_futile(self) -> bool:
        return any(each.poisoned() or each.team.deserted for each in self._directions)

    def _forked(self) -> bool:
        return os.getpid() != self._pid


def _narrowed(config: Config) -> Config:
    """Return the settings for a pair, from those of a communicator."""
    names = [name for name in _TRANSPORTS if name in config.transports]
    if not names:
        raise ConfigError(
            f"TRANSPORT={config.transport}, but messages of pairs go over "
            f"{' or '.join(_TRANSPORTS)}"
        )
    return dataclasses.replace(
        config,
        transport=",".join(names),
        node_bytes=0,
        rails=1,
        subgroups=1,
        workers="off",
        progress="auto" if config.has_proxy else config.progress,
    )
