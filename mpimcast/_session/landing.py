# SPDX-License-Identifier: BSD-3-Clause
"""Partial completion of an operation under way: who asks for its blocks, who is told.

What C's landing says is passed on while the operation goes on; when it ends, the rest
of the order is kept. Callbacks are run by the completer, or by the thread that makes
progress where there is none. MPI's request is completed after them, so that whoever
waits for it learns of their exceptions.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from mpimcast._native.operation import SLICE_NS
from mpimcast.errors import Error

if TYPE_CHECKING:
    from collections.abc import Callable

    from mpimcast._native.landing import Bits
    from mpimcast._session.places import Places


class Native(Protocol):
    """The landing of what carries an operation: `NativeLanding`, or that of pieces."""

    def block(self, index: int) -> int | None:
        """Return whose block was number `index` to land; None if none was."""

    def has(self, rank: int, first_bytes: int, nbytes: int) -> bool:
        """Return whether a range of a block is present."""

    def wait_block(self, index: int, slice_ns: int) -> None:
        """Wait until so many blocks have landed, but for a slice of time at most."""

    def wait_range(
        self, rank: int, first_bytes: int, nbytes: int, slice_ns: int
    ) -> None:
        """Wait until a range of a block is present, but for a slice at most."""

    def tell(self) -> None:
        """Let blocks that land wake the completers."""

    def bits(self) -> Bits | None:
        """Return the bits of the chunks, if there are any."""


class Operation(Protocol):
    """The operation under way; `pending.Pending` implements it.

    Attributes
    ----------
    over : bool
        Whether C has finished with it.
    error : Exception or None
        The reason of the failure, if it failed.
    """

    over: bool
    error: Exception | None

    @property
    def request(self) -> object:
        """MPI's request; None once MPI has reported the end."""

    def poke(self) -> None:
        """Check for completion."""

    def rouse(self) -> None:
        """Have the completer look at the operation."""

    def sleep_until(
        self, reached: Callable[[], bool], doze: Callable[[], None]
    ) -> None:
        """Wait until `reached()` or the end; `doze` waits for a slice of time."""

    def unpack(self) -> None:
        """Put received data in its place, unless that has been done."""

    def finish(self) -> None:
        """Complete MPI's request."""


class _Callback:
    """A function that is to be called for each block, and for how many it was."""

    def __init__(self, call: Callable[[int], object]) -> None:
        self.call = call
        self.ntold = 0


# What is known of chunks where there are none to look at: the result is one chunk.
_WHOLE = 1


class Landing:
    """The blocks of an operation, as its request shows them.

    Parameters
    ----------
    operation
        The operation.
    places
        Where its blocks lie.
    native
        What carries it.
    attended
        Whether completers look after it.

    Attributes
    ----------
    polls : bool
        Whether who waits must look now and then, since no thread tells of blocks.
    error : BaseException or None
        What a callback has raised.
    """

    def __init__(
        self, operation: Operation, places: Places, native: Native, *, attended: bool
    ) -> None:
        self.polls = not attended
        self.error: BaseException | None = None
        self._operation = operation
        self._places = places
        self._native = native
        self._order: list[int] = []  # of blocks, as far as known; complete at the end
        self._words: Any = None  # the array of the chunks' bits
        self._nbits = 0
        # Guards the fields below.
        self._lock = threading.Lock()
        self._ended = False
        self._callbacks: list[_Callback] = []
        self._listeners: set[Callable[[], None]] = set()
        # Held by the thread that runs callbacks.
        self._telling = threading.Lock()
        self._teller: threading.Thread | None = None
        self._has_news = False
        self._told = threading.Event()

    # ---- questions -----------------------------------------------------------

    @property
    def ranks(self) -> range:
        """The ranks that have a block."""
        return self._places.ranks

    def look(self, index: int) -> int | None:
        """Return whose block was number `index` to land; None if none was so far."""
        self._check()
        return self._look(index)

    def wait(self, index: int) -> int:
        """Wait until so many blocks have landed; return whose the last one is."""
        while (rank := self.look(index)) is None:
            self._operation.sleep_until(
                lambda: self.look(index) is not None,
                lambda: self._native.wait_block(index, SLICE_NS),
            )
        return rank

    def wait_block(self, rank: int) -> None:
        """Wait until the block of `rank` has landed."""
        nbytes = self._places.nbytes(rank)
        self._wait_for(rank, 0, nbytes)

    def test_range(self, first: int, count: int) -> bool:
        """Return whether items of the receive buffer are present."""
        ranges = list(self._places.ranges(first, count))
        self._check()
        if self._has_all(ranges):
            return True
        if self.polls:
            self._operation.poke()
            self._check()
        return self._has_all(ranges)

    def wait_range(self, first: int, count: int) -> None:
        """Wait until items of the receive buffer are present."""
        for each in self._places.ranges(first, count):
            self._wait_for(*each)
        self._check()

    def chunks(self) -> tuple[Any, int]:
        """Return the array of the bits of the chunks, and how many there are."""
        if self._words is None and self._places.is_direct:
            bits = self._native.bits()
            if bits is not None:
                self._nbits = bits.nbits
                self._words = np.frombuffer(bits.words, np.uint64)
        if self._words is not None:
            return self._words, self._nbits
        words = np.array([self._operation.over], np.uint64)
        words.flags.writeable = False
        return words, _WHOLE

    def help_on(self) -> None:
        """Make progress, where no thread does."""
        self._operation.poke()

    def _look(self, index: int) -> int | None:
        """Return as `look` does; None after a failure."""
        rank = None
        if not self._ended and self._places.is_direct:
            rank = self._native.block(index)
        # C may have forgotten it just now, since the order is known for good.
        if rank is None and index < len(self._order):
            rank = self._order[index]
        return rank

    def _has_all(self, ranges: list[Any]) -> bool:
        if self._ended:
            return True
        return self._places.is_direct and all(
            self._native.has(*each) for each in ranges
        )

    def _wait_for(self, rank: int, first_bytes: int, nbytes: int) -> None:
        wanted = (rank, first_bytes, nbytes)

        def reached() -> bool:
            self._check()
            return self._has_all([wanted])

        def doze() -> None:
            if self._places.is_direct:
                self._native.wait_range(*wanted, SLICE_NS)
            else:
                self._native.wait_block(len(self.ranks) - 1, SLICE_NS)

        self._operation.sleep_until(reached, doze)
        self._check()

    def _check(self) -> None:
        """Raise the operation's error if it has failed; see that its data is unpacked.

        The order, which `end` sets after all that, tells that there was no failure.
        """
        if self._operation.error is not None:
            raise self._operation.error
        if self._ended and not self._places.is_direct:
            self._operation.unpack()
            if self._operation.error is not None:
                raise self._operation.error

    # ---- news ----------------------------------------------------------------

    def on_block(self, call: Callable[[int], object]) -> None:
        """Have a function called for each block that has landed or will land."""
        with self._lock:
            ended = self._ended
            if not ended:
                self._callbacks.append(_Callback(call))
        if not ended:
            self._native.tell()
            self._operation.rouse()
            return
        self._check()
        for rank in self._order:
            self._call(call, rank)
        if self.error is not None and self._operation.request is None:
            raise self.error  # nobody will wait any more

    def listen(self, wake: Callable[[], None]) -> None:
        """Have a function called, in any thread, when blocks may have landed."""
        with self._lock:
            self._listeners.add(wake)
            ended = self._ended
        if ended:
            wake()
        else:
            self._native.tell()

    def unlisten(self, wake: Callable[[], None]) -> None:
        """End what `listen` has begun."""
        with self._lock:
            self._listeners.discard(wake)

    def tell(self) -> None:
        """Call callbacks and listeners, if blocks have landed since."""
        if not self._callbacks and not self._listeners:
            return
        self._has_news = True
        while self._has_news and self._telling.acquire(blocking=False):
            try:
                self._teller = threading.current_thread()
                self._has_news = False
                self._wake()
                self._call_all()
            finally:
                self._teller = None
                self._telling.release()

    def join(self) -> None:
        """Wait until the callbacks of an operation that has ended have been called."""
        if self._callbacks and self._teller is not threading.current_thread():
            self._told.wait()

    # ---- the end -------------------------------------------------------------

    def close(self) -> None:
        """Keep the order of the blocks, before C forgets it."""
        if self._operation.error is not None or len(self._order) == len(self.ranks):
            return
        order: list[int | None] = [None]
        if self._places.is_direct:
            order = [self._native.block(index) for index in range(len(self.ranks))]
        self._order = (
            self._places.order()
            if None in order
            else [rank for rank in order if rank is not None]
        )

    def end(self) -> bool:
        """Take note of the end; return whether callbacks have to be called first."""
        with self._lock:
            self._ended = True
            owes = bool(self._callbacks) and not self._told.is_set()
        self._wake()
        return owes

    def _wake(self) -> None:
        with self._lock:
            listeners = tuple(self._listeners)
        for wake in listeners:
            wake()

    def _call_all(self) -> None:
        """Call the callbacks for the blocks that they have not been called for."""
        ended = self._ended
        with self._lock:
            callbacks = tuple(self._callbacks)
        for each in callbacks:
            while (rank := self._look(each.ntold)) is not None:
                each.ntold += 1
                self._call(each.call, rank)
        if ended and callbacks:
            self._told.set()
            self._operation.finish()

    def _call(self, call: Callable[[int], object], rank: int) -> None:
        """Call a callback; after an exception no callback is called any more."""
        if self.error is not None or self._operation.error is not None:
            return
        try:
            call(rank)
        except BaseException as error:  # noqa: BLE001 -- whoever waits gets it
            self.error = error


def as_error(error: BaseException) -> Exception:
    """Return what MPI's functions may report instead of a callback's exception."""
    return (
        error if isinstance(error, Exception) else Error(f"on_block raised {error!r}")
    )
