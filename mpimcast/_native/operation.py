# SPDX-License-Identifier: BSD-3-Clause
"""One operation of the C library: its description, its start, and its end."""

from __future__ import annotations

import hashlib
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

from mpimcast._core import ffi, lib
from mpimcast._native import disagreement
from mpimcast._native.core import KIND_NAMES, KINDS, NOBODY, last_error, string
from mpimcast._native.failure import (
    culprits_of,
    operation_error,
    poison_error,
    reason_of,
)
from mpimcast._native.landing import NativeLanding
from mpimcast._support.shared_memory import PRIVATE, Target
from mpimcast.errors import Error

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mpimcast._core import _CData as CData
    from mpimcast._native.calls import AnyStream

# The longest time that a call stays in C, but for long operations that all ranks have
# entered: an eighth of the time so far, up to 16 times as long. Python's signal
# handlers, and the MPI library's progress, wait for its return.
SLICE_NS = 1_000_000

# The most counts of an Allgatherv that a message lists; it hashes a longer list.
_COUNTS_SHOWN_MAX = 8


class Description:
    """C's description of an operation, which may be started with it many times.

    Parameters
    ----------
    kind
        Allgather, Allgatherv or Bcast, in lower case, or node_barrier.
    blocks_bytes
        Bytes of each rank's block; one number for equal blocks and for a Bcast.
    root
        The root of a Bcast.
    notifies
        Whether the operation's end wakes `engine.Notifications.wait`.
    target
        The memory that the result goes to.

    Attributes
    ----------
    send : int or None
        Address of this rank's block; None if it lies in its place in `recv`.
    recv : int
        Address of the memory for all blocks.
    """

    send: int | None = None
    recv: int = 0

    def __init__(
        self,
        kind: str,
        blocks_bytes: int | Sequence[int],
        *,
        root: int = 0,
        notifies: bool = False,
        target: Target = PRIVATE,
    ) -> None:
        self._target = target
        self.c = ffi.new("struct mmc_operation *")
        self.c.shared = target.key
        self.c.kind = KINDS[kind]
        self.c.root = root
        self.c.notifies = notifies
        self._blocks = self._offsets = ffi.NULL
        if isinstance(blocks_bytes, int):
            self.c.block_bytes = blocks_bytes
        else:
            self._blocks = ffi.new("uint64_t[]", blocks_bytes)
            self._offsets = ffi.new("uint64_t[]", len(blocks_bytes))
        self.c.blocks_bytes, self.c.offsets_bytes = self._blocks, self._offsets

    @property
    def first_rank(self) -> int:
        """The rank whose block is the first: a Bcast has only the root's."""
        return int(self.c.root) if self.c.kind == lib.MMC_BCAST else 0

    def blocks(self, nranks: int) -> tuple[list[int], list[int]]:
        """Return the bytes of each block of a result, and where in `recv` it begins."""
        if self._blocks != ffi.NULL:
            return list(self._blocks), list(self._offsets)
        sizes = [int(self.c.block_bytes)]
        if self.c.kind != lib.MMC_BCAST:
            sizes *= nranks
        return sizes, [0, *accumulate(sizes[:-1])]

    def part(self, blocks_bytes: Sequence[int] | None) -> Description:
        """Return the description of the same operation, or of a part of each block.

        Parameters
        ----------
        blocks_bytes
            The bytes of each block's part; None for whole blocks.
        """
        kind = KIND_NAMES[self.c.kind].lower()
        sizes: int | Sequence[int] = int(self.c.block_bytes)
        if blocks_bytes is None and self._blocks != ffi.NULL:
            blocks_bytes = list(self._blocks)
        if blocks_bytes is not None and self.c.kind == lib.MMC_BCAST:
            (sizes,) = blocks_bytes
        elif blocks_bytes is not None:
            kind, sizes = "allgatherv", blocks_bytes
        return Description(
            kind,
            sizes,
            root=self.c.root,
            notifies=bool(self.c.notifies),
            target=self._target,
        )

    def set_parts(
        self, send: int | None, recv: int, offsets_bytes: Sequence[int]
    ) -> None:
        """Set where the parts of blocks lie, as `set_addresses` for whole blocks."""
        if self._offsets == ffi.NULL:
            self.set_addresses(send, recv + offsets_bytes[0])
        else:
            self.set_addresses(send, recv, offsets_bytes)

    def decide(self, reliability: str) -> None:
        """Have lost chunks made up for by ``"repeat"`` or ``"code"`` on all ranks."""
        self.c.reliability = getattr(lib, f"MMC_DECIDE_{reliability.upper()}")

    def report_blocks(self) -> None:
        """Have the operation tell which blocks have landed, see `NativeLanding`."""
        self.c.partial = 1

    def hold_back(self) -> None:
        """Let the operation begin only once `NativeOperation.ready` is called."""
        self.c.unready = 1

    def fact(self) -> disagreement.Fact:
        """Return what this rank tells others if they started different operations."""
        kind = KIND_NAMES[self.c.kind]
        counts = ""
        if kind == "Allgatherv":
            sizes = list(map(int, self._blocks))
            counts = f"{', '.join(map(str, sizes))} bytes"
            if len(sizes) > _COUNTS_SHOWN_MAX:
                digest = hashlib.sha256(counts.encode()).hexdigest()[:8]
                counts = f"{sum(sizes)} bytes in all, whose counts hash to {digest},"
        return disagreement.Fact(
            kind, self.c.root, self.c.block_bytes, counts, self._target.words
        )

    def set_addresses(
        self, send: int | None, recv: int, offsets_bytes: Sequence[int] | None = None
    ) -> None:
        """Set where the data lies in this rank's memory.

        Parameters
        ----------
        send
            Address of this rank's block; None if it lies in its place in `recv`.
        recv
            Address of the memory for all blocks.
        offsets_bytes
            For an Allgatherv, the offset in `recv` of each rank's block.
        """
        self.send, self.recv = send, recv
        self.c.send = ffi.NULL if send is None else ffi.cast("void *", send)
        self.c.recv = ffi.cast("void *", recv)
        if offsets_bytes is not None:
            self._offsets[0 : len(offsets_bytes)] = offsets_bytes


class Waiting(NamedTuple):
    """How long an operation has waited, and for what.

    Attributes
    ----------
    waited_s : float
        The time since the operation's start.
    all_entered : bool
        Whether all ranks are known to have entered.
    epoch : int
        The operation's number; 0 while earlier operations have to end first.
    rank : int or None
        The rank that is awaited first.
    unentered : int or None
        A rank that has not entered; None if none is known.
    stands_still : bool
        Whether the process of `rank` exists, but does not answer.
    missing_chunks : int
        How many chunks this rank lacks.
    """

    waited_s: float
    all_entered: bool
    epoch: int
    rank: int | None
    unentered: int | None
    stands_still: bool
    missing_chunks: int

    def for_whom(self) -> str:
        """Return in words for what the operation waits; they follow "for"."""
        if self.epoch == 0:
            return "earlier operations"
        if self.stands_still:
            return f"rank {self.rank}, which stands still while its host answers"
        if self.all_entered:
            who = "no rank" if self.rank is None else f"rank {self.rank}"
            return f"{who}: {self.missing_chunks} chunks are missing here"
        if self.unentered is None:
            return f"rank {self.rank}: not all ranks have entered it"
        return (
            f"rank {self.unentered}, which has not entered it: that rank is computing, "
            "has failed, or left it to the MPI library (passed fewer bytes than "
            "MIN_BYTES, or private memory where others share it)"
        )


class NativeOperation:
    """One operation of a stream, from before its start to its end.

    The object is made before the operation is started. So there is always an object
    that can end a started operation, wherever Ctrl-C may raise an exception: callers
    use ``cancel`` in an ``except`` clause, and ``free`` in a ``finally``.

    Parameters
    ----------
    stream
        The stream.
    name
        The operation in words, for messages.
    request
        The place of C's request, if the operation has been started already.

    Attributes
    ----------
    name : str
        The operation in words, for messages.
    channel : int
        The stream's channel.
    mismatch
        C's struct mmc_failure if ranks started different operations, else None.
    landing : NativeLanding
        Which of its blocks have landed, if its description has it report them.
    """

    def __init__(
        self, stream: AnyStream, name: str, request: CData | None = None
    ) -> None:
        self._stream = stream
        self.name = name
        self.channel = stream.channel
        self.mismatch: CData = None
        self._calls = stream.calls
        self._request = ffi.new(stream.calls.request) if request is None else request
        self.landing = NativeLanding(self._calls, self._request)
        self._notifies = False

    def start(self, description: Description, *, waits: bool = True) -> bool:
        """Start the operation; if `waits`, then wait for it, but at most `SLICE_NS`.

        Returns
        -------
        bool
            Whether it has ended. Until it has, the buffers belong to mpimcast.
        """
        slice_ns = SLICE_NS if waits else 0
        self._notifies = bool(description.c.notifies)
        status = self._calls.start(
            self._stream.c, description.c, slice_ns, self._request
        )
        # A caller that does not wait learns later, from its request, that a started
        # operation has failed, even if it has failed already.
        tells_later = not waits and self._request[0] != ffi.NULL
        if tells_later and status != -lib.MMC_EPOISONED:
            return False
        return self._is_over(status)

    def wait(self) -> bool:
        """Wait for at most `SLICE_NS`; return whether the operation has ended.

        Raise its error if it has failed.
        """
        return self._is_over(self._calls.wait(self._request[0], SLICE_NS))

    def test(self) -> bool:
        """Return whether the operation has ended; raise its error if it has failed.

        Make progress first for an operation that does not notify of its end, since no
        thread may be doing so.
        """
        if not self._notifies:
            self._stream.make_progress()
        return self._is_over(self._calls.wait(self._request[0], 0))

    def waiting(self) -> Waiting:
        """Return what an operation that has not ended waits for."""
        waiting = ffi.new("struct mmc_waiting *")
        self._calls.waiting(self._request[0], waiting)
        return Waiting(
            waited_s=waiting.waited_ns / 1e9,
            all_entered=bool(waiting.entered),
            epoch=int(waiting.epoch),
            rank=self._number(waiting.rank),
            unentered=self._number(waiting.unentered),
            stands_still=bool(waiting.silent),
            missing_chunks=waiting.missing_chunks,
        )

    def ready(self) -> None:
        """Let the operation begin on this rank if its description held it back."""
        if self._request[0] != ffi.NULL:
            self._calls.ready(self._request[0])

    def cancel(self) -> None:
        """Give up the operation if it was started and has not ended."""
        if self._request[0] != ffi.NULL:
            self._calls.cancel(self._request[0])

    def free(self) -> None:
        """Free C's request, if there is one."""
        with self.landing.lock:
            request, self._request[0] = self._request[0], ffi.NULL
            self._calls.free(request)

    def _is_over(self, status: int) -> bool:
        """Return whether a call's `status` says that the operation has ended.

        Raise the operation's error if it says that it has failed.
        """
        if status == lib.MMC_EAGAIN:
            return False
        if status < 0:
            # The error must be read before free() loses it.
            error = self._error(status)
            self.free()
            raise error
        return True

    def _error(self, status: int) -> Error:
        more = last_error()
        failure = ffi.new("struct mmc_failure *")
        if status == -lib.MMC_EPOISONED:
            return poison_error(self._stream)
        if self._request[0] == ffi.NULL:
            text = f"{self.name} was not started: {string(lib.mmc_strerror(status))}"
            return Error(f"{text} ({more})" if more else text)
        self._calls.failure(self._request[0], failure)
        if failure.error == -lib.MMC_EMISMATCH:
            self.mismatch = failure
        reason = reason_of(self._stream, failure, more)
        culprits = culprits_of(self._stream, failure)
        return operation_error(self._stream, self.name, failure, reason, culprits)

    def _number(self, rank: int) -> int | None:
        """Return the number by which programs know C's rank, or None for no rank."""
        return None if rank == NOBODY else self._stream.words.number(int(rank))

    def disagree(self, reason: str, ranks: tuple[int, ...]) -> Error:
        """Return the error of an operation of which ranks started different forms."""
        self._stream.first_failure = None
        return operation_error(self._stream, self.name, self.mismatch, reason, ranks)

    def tell_apart(self, error: Error, told: Mapping[int, Any]) -> Error:
        """Return an error that says which ranks started another operation than most.

        Parameters
        ----------
        error
            The operation's error, which is returned if the facts show no difference.
        told
            The `disagreement.Fact` of each rank that has told it.
        """
        text, ranks = disagreement.explain(told, self._stream.nranks)
        if not text:
            return error
        return self.disagree(f"the ranks disagree: {text}", ranks)
