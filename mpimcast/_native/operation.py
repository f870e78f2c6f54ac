# SPDX-License-Identifier: BSD-3-Clause
"""One operation of the C core: what it moves, how to wait for it, and why it failed."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, NamedTuple

from mpimcast._core import ffi, lib
from mpimcast._native import disagreement
from mpimcast._native.core import last_error, string
from mpimcast.errors import Error, RankLeft, TimedOut, TransportError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mpimcast._core import _CData as CData
    from mpimcast._native.stream import Stream

# The longest stay in C; signals and the MPI library's progress wait for it.
_SLICE_NS = 1_000_000
_NOBODY = 2**32 - 1
_KINDS = {
    "allgather": lib.MMC_ALLGATHER,
    "allgatherv": lib.MMC_ALLGATHERV,
    "bcast": lib.MMC_BCAST,
}
_COUNTS_SHOWN_MAX = 8
_NAMES = {kind: name.capitalize() for name, kind in _KINDS.items()}


class Description:
    """An operation's description for C, with which it may be started many times.

    Parameters
    ----------
    kind
        Allgather, Allgatherv or Bcast, in lower case.
    blocks_bytes
        Bytes of each rank's block; one number for equal blocks and for a Bcast.
    root
        The root of a Bcast.
    notifies
        Whether the operation's end wakes `engine.Ends.wait`.
    """

    def __init__(
        self,
        kind: str,
        blocks_bytes: int | Sequence[int],
        *,
        root: int = 0,
        notifies: bool = False,
    ) -> None:
        self.c = ffi.new("struct mmc_operation *")
        self.c.kind = _KINDS[kind]
        self.c.root = root
        self.c.notifies = notifies
        self._blocks = self._offsets = ffi.NULL
        if isinstance(blocks_bytes, int):
            self.c.block_bytes = blocks_bytes
        else:
            self._blocks = ffi.new("uint64_t[]", blocks_bytes)
            self._offsets = ffi.new("uint64_t[]", len(blocks_bytes))
        self.c.blocks_bytes, self.c.offsets_bytes = self._blocks, self._offsets

    def fact(self) -> disagreement.Fact:
        """Return the facts that ranks compare after starting different operations."""
        kind = _NAMES[self.c.kind]
        counts = ""
        if kind == "Allgatherv":
            sizes = list(map(int, self._blocks))
            counts = f"{', '.join(map(str, sizes))} bytes"
            if len(sizes) > _COUNTS_SHOWN_MAX:
                digest = hashlib.sha256(counts.encode()).hexdigest()[:8]
                counts = f"{sum(sizes)} bytes in all, whose counts hash to {digest},"
        return disagreement.Fact(kind, self.c.root, self.c.block_bytes, counts)

    def at(
        self, send: int | None, recv: int, offsets_bytes: Sequence[int] | None = None
    ) -> None:
        """Set where the data lies; all addresses are this rank's own.

        Parameters
        ----------
        send
            Address of this rank's block; None if it lies in its place in `recv`.
        recv
            Address of the memory for all blocks.
        offsets_bytes
            For an Allgatherv, the offset in `recv` of each rank's block.
        """
        self.c.send = ffi.NULL if send is None else ffi.cast("void *", send)
        self.c.recv = ffi.cast("void *", recv)
        if offsets_bytes is not None:
            self._offsets[0 : len(offsets_bytes)] = offsets_bytes


class Waiting(NamedTuple):
    """What a request waits for."""

    waited_s: float
    entered: bool  # all ranks have entered
    epoch: int  # 0 while earlier operations have to end first
    rank: int | None  # the rank that is awaited first
    late: int | None  # a rank that has not entered; None if none is known
    still: bool  # the awaited rank's process exists, but does not answer
    missing_chunks: int


class NativeOperation:
    """One operation of a stream, from before its start to its end.

    Attributes
    ----------
    channel : int
        The stream's channel.
    differs
        C's description of the failure, if ranks started different operations.

    It is made before anything is started, so that no exception, which Ctrl-C may raise
    anywhere, can separate a started operation from the object that can end it: by
    ``cancel`` in an ``except`` clause, and ``free`` in a ``finally``.
    """

    def __init__(self, stream: Stream, name: str) -> None:
        self._stream = stream
        self.name = name
        self.channel = stream.channel
        self.differs: CData = None
        self._request = ffi.new("struct mmc_request **")
        self._notifies = False

    def start(self, description: Description, *, waits: bool = True) -> bool:
        """Start an operation; wait for at most `_SLICE_NS` if `waits`, else not at all.

        Returns
        -------
        bool
            Whether it has ended. Until it has, the buffers belong to the library.
        """
        slice_ns = _SLICE_NS if waits else 0
        self._notifies = bool(description.c.notifies)
        status = lib.mmc_start(self._stream.c, description.c, slice_ns, self._request)
        # A caller that does not wait learns of any failure later, even of one so early.
        later = not waits and self._request[0] != ffi.NULL
        if later and status != -lib.MMC_EPOISONED:
            return False
        return self._is_over(status)

    def wait(self) -> bool:
        """Wait for at most `_SLICE_NS`; return whether the operation has ended."""
        return self._is_over(lib.mmc_request_wait(self._request[0], _SLICE_NS))

    def test(self) -> bool:
        """Return whether the operation has ended.

        Without a notification of its end no other thread may be making progress, so
        make some first.
        """
        if not self._notifies:
            self._stream.endpoint.move()
        return self._is_over(lib.mmc_request_wait(self._request[0], 0))

    def waiting(self) -> Waiting:
        """Return what an operation that has not ended waits for."""
        waiting = ffi.new("struct mmc_waiting *")
        lib.mmc_request_waiting(self._request[0], waiting)
        return Waiting(
            waited_s=waiting.waited_ns / 1e9,
            entered=bool(waiting.entered),
            epoch=int(waiting.epoch),
            rank=_rank(waiting.rank),
            late=_rank(waiting.late),
            still=bool(waiting.still),
            missing_chunks=waiting.missing_chunks,
        )

    def cancel(self) -> None:
        """Give up the operation if it was started and has not ended."""
        if self._request[0] != ffi.NULL:
            lib.mmc_request_cancel(self._request[0])

    def free(self) -> None:
        """Free C's request, if there is one."""
        request, self._request[0] = self._request[0], ffi.NULL
        lib.mmc_request_free(request)

    def _is_over(self, status: int) -> bool:
        if status == lib.MMC_EAGAIN:
            return False
        if status < 0:
            # Read the error before free() loses it. An ended one needs no cancel().
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
        lib.mmc_request_failure(self._request[0], failure)
        if failure.error == -lib.MMC_EMISMATCH:
            self.differs = failure
        reason = _reason(self._stream, failure, more)
        return _failed(self._stream, self.name, failure, reason, _culprits(failure))

    def tell_apart(self, error: Error, told: Mapping[int, Any]) -> Error:
        """Return an error that names the ranks which started another operation.

        Return `error` unchanged if what the ranks have `told` shows no difference.
        """
        text, ranks = disagreement.explain(told, self._stream.endpoint.nranks)
        if not text:
            return error
        self._stream.first_failure = None
        reason = f"the ranks disagree: {text}"
        return _failed(self._stream, self.name, self.differs, reason, ranks)


def _rank(number: int) -> int | None:
    return None if number == _NOBODY else int(number)


_ERRORS = {
    -lib.MMC_ENOANSWER: TimedOut,
    -lib.MMC_ENOPROGRESS: TimedOut,
    -lib.MMC_ENOENTRY: TimedOut,
    -lib.MMC_ELEFT: RankLeft,
    -lib.MMC_EGONE: RankLeft,
    -lib.MMC_ELATE: TimedOut,
    -lib.MMC_EIO: TransportError,
    -lib.MMC_ENODEV: TransportError,
}


_DEEDS = {
    -lib.MMC_ECANCELED: "was interrupted and gave the operation up",
    -lib.MMC_ELEFT: "left without entering the operation: the program ended there, or "
    "freed the communicator",
}


def _failed(
    stream: Stream, name: str, failure: CData, reason: str, ranks: tuple[int, ...]
) -> Error:
    """Return an operation's error: where it failed, and for which `reason`.

    Record the stream's first failure.
    """
    stream.first_failure = stream.first_failure or (reason, ranks)
    missing = ""
    if failure.missing_chunks:
        missing = f". {failure.missing_chunks} chunks were missing here"
    return _ERRORS.get(failure.error, Error)(
        f"{name} failed on {_here(stream)}, "
        f"operation {failure.epoch}: {reason}{missing}",
        epoch=int(failure.epoch),
        ranks=ranks,
        missing_chunks=int(failure.missing_chunks),
    )


def poison_error(stream: Stream) -> Error:
    """Return the error of later operations, which names the one that failed first."""
    failure = ffi.new("struct mmc_failure *")
    lib.mmc_stream_failure(stream.c, failure)
    reason, ranks = stream.first_failure or (
        _reason(stream, failure, last_error()),
        _culprits(failure),
    )
    return _ERRORS.get(failure.error, Error)(
        f"this communicator is unusable on {_here(stream)} since its operation "
        f"{failure.epoch} failed: {reason}. Free it and make another",
        epoch=int(failure.epoch),
        ranks=ranks,
    )


def _here(stream: Stream) -> str:
    return f"rank {stream.endpoint.rank} of {stream.endpoint.nranks}"


def _culprits(failure: CData) -> tuple[int, ...]:
    return () if failure.culprit == _NOBODY else (int(failure.culprit),)


def _difference(failure: CData) -> str:
    """Return in words what differs between the ranks, and what must be equal."""
    if failure.kind_min != failure.kind_max:
        some, others = (_NAMES[k] for k in (failure.kind_min, failure.kind_max))
        return f"some are in {some}, others in {others}; all must call the same"
    if failure.root_min != failure.root_max:
        low, high = failure.root_min, failure.root_max
        return f"roots are ranks {low} to {high}; all must pass the same"
    if failure.kind_min == lib.MMC_ALLGATHERV:
        return "blocks are not of the same bytes; all must pass the same counts"
    what = "data is" if failure.kind_min == lib.MMC_BCAST else "blocks are"
    return (
        f"{what} of {failure.block_bytes_min} to {failure.block_bytes_max} bytes; all "
        "must pass equally many bytes"
    )


def _overdue(stream: Stream, failure: CData, who: str, seen: str) -> str:
    """Return which rank was awaited in vain, and why; "" if the error is another."""
    config = stream.config
    how = f"({seen})" if seen else f"within TIMEOUT ({config.timeout:g} s)"
    return {
        -lib.MMC_ENOANSWER: (
            f"no answer from {who} {how}; see whether its process still runs and its "
            "network works"
        ),
        -lib.MMC_ENOPROGRESS: (
            f"all ranks had entered, but nothing new came from {who} within TIMEOUT "
            f"({config.timeout:g} s); see whether the network passes multicast, or set "
            "a longer MPIMCAST_TIMEOUT"
        ),
        -lib.MMC_ENOENTRY: (
            f"{who} did not enter the operation within ENTRY_TIMEOUT "
            f"({config.entry_timeout:g} s)"
        ),
        -lib.MMC_EGONE: (
            f"the process of {who} has ended: its host refuses connections"
        ),
        -lib.MMC_ELATE: (
            f"the process of {who} stands still, though its host answers, for longer "
            f"than LATE_TIMEOUT ({config.late_timeout:g} s); see whether a debugger or "
            "a signal has stopped it"
        ),
    }.get(int(failure.error), "")


def _reason(stream: Stream, failure: CData, seen: str) -> str:
    """Return what failed, in words; `seen` is this rank's device's report, or ""."""
    who = " and ".join(f"rank {rank}" for rank in _culprits(failure)) or "a rank"
    overdue = _overdue(stream, failure, who, seen)
    if overdue:
        return overdue
    if failure.error == -lib.MMC_EMISMATCH:
        return f"the ranks disagree: {_difference(failure)}"
    if failure.error in _DEEDS:
        return f"{who} {_DEEDS[failure.error]}"
    what = f"{string(lib.mmc_strerror(failure.error))}, at {who}"
    return f"{what} ({seen})" if seen else what
