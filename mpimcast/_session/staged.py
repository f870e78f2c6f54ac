# SPDX-License-Identifier: BSD-3-Clause
"""Operations that go piece by piece, through pinned memory if they are of a device.

A piece has up to three steps: the device copies this rank's part into a slot of pinned
memory, the network moves all parts, and the device copies them out of the slot. The
steps of different pieces overlap: one is on the network, while the next is fetched and
the last one is stored. All pieces have their places in the stream from the start, so
that later operations come behind them; a piece whose part is not there yet is held
back.
"""

from __future__ import annotations

import contextlib
import threading
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from mpimcast._device.device import Copy, pool
from mpimcast._native.operation import SLICE_NS, NativeOperation
from mpimcast._session.cutting import cut
from mpimcast._session.piecewise import PiecewiseLanding
from mpimcast.errors import Error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from mpimcast._device.device import Device, Pinned
    from mpimcast._native.calls import AnyStream
    from mpimcast._native.operation import Description, Waiting
    from mpimcast._session.cutting import Part
    from mpimcast._session.ends import Ends

# How many pieces of one operation have pinned memory at a time: one to be fetched, one
# on the network, one to be stored.
_NSLOTS = 3


class _AwaitingCopies(NamedTuple):
    """What an operation waits for while a device copies, as `operation.Waiting`."""

    waited_s: float
    epoch: int = 0

    def for_whom(self) -> str:
        """Return in words for what the operation waits; they follow "for"."""
        return (
            "this rank's device, whose copies come after what the streams of the "
            "arrays still have to do"
        )


class _Piece:
    """A piece of an operation.

    Attributes
    ----------
    parts : list
        Its part of each block.
    native : NativeOperation
        What moves it.
    fetched, moved, stored : bool
        Which steps have ended.
    """

    def __init__(self, parts: list[Part], native: NativeOperation) -> None:
        self.parts = parts
        self.native = native
        self.fetched = self.moved = self.stored = False


class StagedOperation:
    """One operation in pieces, as callers see a `NativeOperation`.

    Parameters
    ----------
    stream
        The stream.
    name
        The operation in words, for messages.
    ends
        Where the data comes from and goes to.
    piece_bytes
        The most bytes of a piece.
    wake
        Called, in any thread, when a copy has ended.

    Attributes
    ----------
    name, channel, mismatch, landing
        As those of a `NativeOperation`.
    """

    def __init__(
        self,
        stream: AnyStream,
        name: str,
        ends: Ends,
        piece_bytes: int,
        wake: Callable[[], None],
    ) -> None:
        self.name = name
        self.channel = stream.channel
        self._stream = stream
        self._ends = ends
        self._piece_bytes = piece_bytes
        self._wake = wake
        self.landing = PiecewiseLanding(self.wait, wake)
        self._news = threading.Event()
        self._pieces: list[_Piece] = []
        self._slots: list[Pinned] = []
        self._begin_s = 0.0
        # How many pieces have begun to be fetched, are on the network or were there,
        # have been moved, and have ended.
        self._nfetching = self._nready = self._nmoved = self._nended = 0

    @property
    def mismatch(self) -> Any:
        """C's struct mmc_failure if ranks started different operations, else None."""
        found = (piece.native.mismatch for piece in self._pieces)
        return next((each for each in found if each is not None), None)

    # ---- as a native operation -------------------------------------------------

    def start(self, description: Description, *, waits: bool = True) -> bool:
        """Start the operation; if `waits`, then wait for it, but at most a slice.

        Return whether it has ended.
        """
        self._begin_s = time.monotonic()
        self._description = description
        blocks = description.blocks(self._stream.nranks)
        self.landing.begin(blocks[0], description.first_rank)
        pieces = cut(*blocks, self._piece_bytes)
        self._take_slots(pieces)
        for index, parts in enumerate(pieces):
            native = NativeOperation(self._stream, self.name)
            piece = _Piece(parts, native)
            self._pieces.append(piece)
            described = self._describe(index, whole=len(pieces) == 1)
            piece.moved = native.start(described, waits=False)
        self._ends.follow_arrays()
        return self.wait() if waits else self.test()

    def wait(self) -> bool:
        """Wait for at most `SLICE_NS`; return whether the operation has ended."""
        self._news.clear()
        if self._advance():
            return True
        with self._giving_up():
            if self._nmoved < self._nready:
                piece = self._pieces[self._nmoved]
                piece.moved = piece.moved or piece.native.wait()
            else:
                self._news.wait(SLICE_NS / 1e9)
        return self._advance()

    def test(self) -> bool:
        """Return whether the operation has ended; raise its error if it has failed."""
        return self._advance()

    def waiting(self) -> Waiting | _AwaitingCopies:
        """Return what an operation that has not ended waits for."""
        if self._nmoved < self._nready:
            return self._pieces[self._nmoved].native.waiting()
        return _AwaitingCopies(time.monotonic() - self._begin_s)

    def cancel(self) -> None:
        """Give up what was started and has not ended."""
        for piece in self._pieces:
            piece.native.cancel()

    def free(self) -> None:
        """Free C's requests, and the pinned memory once no device uses it any more."""
        for piece in self._pieces:
            piece.native.free()
        slots, self._slots = self._slots, []
        if self._nended < len(self._pieces):
            try:
                for device in self._devices():
                    device.finish()
            except Error:
                return  # nobody knows what still uses the memory
        for slot in slots:
            pool.give_back(slot)

    def tell_apart(self, error: Error, told: Mapping[int, Any]) -> Error:
        """Return an error that says which ranks started another operation than most."""
        failed = next(each for each in self._pieces if each.native.mismatch is not None)
        return failed.native.tell_apart(error, told)

    # ---- steps -----------------------------------------------------------------

    def _advance(self) -> bool:
        """Take all steps that can be taken; return whether the operation has ended."""
        with self._giving_up():
            while self._step():
                pass
            if self._nmoved == self._nready:  # then a device is what is awaited
                for device in self._devices():
                    device.check()
        return self._nended == len(self._pieces)

    @contextlib.contextmanager
    def _giving_up(self) -> Iterator[None]:
        """Give up all pieces if there is an exception."""
        try:
            yield
        except BaseException:
            self.cancel()
            raise

    def _step(self) -> bool:
        """Take one step if one can be taken."""
        pieces = self._pieces
        if self._nfetching < min(len(pieces), self._nended + _NSLOTS):
            self._nfetching += 1
            self._fetch(self._nfetching - 1)
        elif self._nready < self._nfetching and pieces[self._nready].fetched:
            pieces[self._nready].native.ready()
            self._nready += 1
        elif self._nmoved < self._nready and self._is_moved(pieces[self._nmoved]):
            self._nmoved += 1
            self._store(self._nmoved - 1)
        elif self._nended < self._nmoved and pieces[self._nended].stored:
            self._nended += 1
            self.landing.add(pieces[self._nended - 1].parts)
        else:
            return False
        return True

    @staticmethod
    def _is_moved(piece: _Piece) -> bool:
        piece.moved = piece.moved or piece.native.test()
        return piece.moved

    def _fetch(self, index: int) -> None:
        piece, device = self._pieces[index], self._ends.source

        def end() -> None:
            piece.fetched = True
            self._tell()

        copies = [] if device is None else list(self._copies_in(index))
        if device is None or not copies:
            piece.fetched = True
        else:
            device.fetch(copies, end)

    def _store(self, index: int) -> None:
        piece, device = self._pieces[index], self._ends.result

        def end() -> None:
            piece.stored = True
            self._tell()

        copies = [] if device is None else list(self._copies_out(index))
        if device is None or not copies:
            piece.stored = True
        else:
            device.store(copies, end)

    def _tell(self) -> None:
        self._news.set()
        self._wake()

    # ---- memory ----------------------------------------------------------------

    def _devices(self) -> set[Device]:
        ends = (self._ends.source, self._ends.result)
        return {device for device in ends if device is not None}

    def _in_place(self) -> bool:
        """Return whether this rank's block lies in its place in the result."""
        own, description = self._ends.own, self._description
        if own is None or description.send is None:
            return True
        _, offsets_bytes = description.blocks(self._stream.nranks)
        return description.send == description.recv + offsets_bytes[own]

    def _take_slots(self, pieces: list[list[Part]]) -> None:
        """Take the slots: of whole pieces, or of this rank's parts alone."""
        for device in list(self._devices())[:1]:
            own = self._ends.own
            parts = (
                piece if self._ends.result is not None or own is None else [piece[own]]
                for piece in pieces
            )
            nbytes = max(sum(part.nbytes for part in each) for each in parts)
            while len(self._slots) < min(len(pieces), _NSLOTS):
                self._slots.append(pool.take(max(nbytes, 1), device))

    def _slot(self, index: int) -> int:
        return self._slots[index % len(self._slots)].address

    def _describe(self, index: int, *, whole: bool) -> Description:
        """Describe a piece for C."""
        ends, parts = self._ends, self._pieces[index].parts
        described = self._description.part(
            None if whole else [part.nbytes for part in parts]
        )
        offsets = [part.place for part in parts]
        recv, send = self._description.recv, None
        if ends.own is not None and self._description.send is not None:
            send = self._description.send + parts[ends.own].within
        if ends.result is not None:
            recv, offsets = self._slot(index), [part.slot for part in parts]
        if ends.source is not None:
            send = None if ends.result is not None else self._slot(index)
        if ends.on_device():
            described.hold_back()
        described.set_parts(send, recv, offsets)
        return described

    def _copies_in(self, index: int) -> Iterator[Copy]:
        """Yield the copy of this rank's part to its place in a slot."""
        ends, description = self._ends, self._description
        if ends.own is None:
            return
        part, host = self._pieces[index].parts[ends.own], self._slot(index)
        if ends.result is not None:
            host += part.slot
        device = description.recv + part.place
        if description.send is not None:
            device = description.send + part.within
        if part.nbytes:
            yield Copy(host, device, part.nbytes)

    def _copies_out(self, index: int) -> Iterator[Copy]:
        """Yield the copies of all parts to the device, but for one that is there."""
        there = self._ends.own if self._in_place() else None
        slot, recv = self._slot(index), self._description.recv
        yield from _joined(
            Copy(slot + part.slot, recv + part.place, part.nbytes)
            for block, part in enumerate(self._pieces[index].parts)
            if part.nbytes and block != there
        )


def _joined(copies: Iterable[Copy]) -> Iterator[Copy]:
    """Yield the same copies, but one for those that are adjacent on both sides."""
    last: Copy | None = None
    for copy in copies:
        if (
            last is not None
            and last.host + last.nbytes == copy.host
            and last.device + last.nbytes == copy.device
        ):
            last = last._replace(nbytes=last.nbytes + copy.nbytes)
            continue
        if last is not None:
            yield last
        last = copy
    if last is not None:
        yield last
