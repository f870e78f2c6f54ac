# SPDX-License-Identifier: BSD-3-Clause
"""The C library in Python's terms: lifetimes, and errors instead of codes.

With devices.py and sim.py the only importer of ``mpimcast._core``. Nothing here
knows MPI.
"""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, NamedTuple

from mpimcast._core import ffi, lib
from mpimcast.errors import Error, TimedOut, TransportError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mpimcast._core import _CData as CData
    from mpimcast.config import Config
    from mpimcast.transport import Draft

# One stay in C: so long do signals and the MPI library's progress wait.
_SLICE_NS = 1_000_000
_NOBODY = 2**32 - 1
CHECKSUMS = {"off": 0, "header": 1, "full": 2}
JOINS = {
    "auto": lib.MMC_JOIN_AUTO,
    "cm": lib.MMC_JOIN_CM,
    "attach": lib.MMC_JOIN_ATTACH,
}
_REPAIRS = {"nak": 0, "neighbour": 1, "read": 2}
TRANSPORT_VERBS = lib.MMC_TRANSPORT_VERBS


def wire_version() -> int:
    """Return the version of wire format and state machine."""
    return lib.mmc_wire_version()


def check_fault(fault: str) -> None:
    """Raise ValueError, saying why, unless `fault` is a good FAULT setting."""
    if lib.mmc_fault_check(fault.encode()) != 0:
        raise ValueError(_last_error())


def counter_names() -> list[str]:
    """List the counters of a stream."""
    count = lib.mmc_counter_count()
    return [string(lib.mmc_counter_name(index)) for index in range(count)]


def string(text: CData) -> str:
    return bytes(ffi.string(text)).decode(errors="replace")


def _last_error() -> str:
    return string(lib.mmc_last_error())


def check(status: int, what: str) -> None:
    """Raise what a negative `status` of a call other than an operation means."""
    if status >= 0:
        return
    text = f"{what}: {string(lib.mmc_strerror(status))}"
    more = _last_error()
    raise TransportError(f"{text} ({more})" if more else text)


# ---- engine, endpoints, streams -----------------------------------------------


class _Engine:
    """This process's engine: made by its first user, ended with the last."""

    def __init__(self) -> None:
        # Garbage may be collected in here, and memory that is ours be among it.
        self._lock = threading.RLock()
        self._c: CData | None = None
        self._pid = 0
        self._nusers = 0

    def acquire(self) -> CData:
        with self._lock:
            if self._pid != os.getpid():
                self._c, self._pid, self._nusers = None, os.getpid(), 0
            self._nusers += 1
            if self._c is None:
                made = ffi.new("struct mmc_engine **")
                status = lib.mmc_engine_create(made)
                if status < 0:
                    self._nusers -= 1
                check(status, "no engine")
                self._c = made[0]
            return self._c

    def release(self) -> None:
        with self._lock:
            self._nusers -= 1
            if self._nusers == 0:
                lib.mmc_engine_destroy(self._c)
                self._c = None


_engine = _Engine()


def allocate(nbytes: int) -> memoryview:
    """Return memory of the engine's, which is freed when nothing refers to it."""
    made = ffi.new("void **")
    engine = _engine.acquire()
    pid = os.getpid()

    def free(memory: CData) -> None:
        if os.getpid() == pid:
            lib.mmc_memory_free(engine, memory)
            _engine.release()

    try:
        check(lib.mmc_memory_allocate(engine, nbytes, made), f"no {nbytes} bytes")
    except TransportError:
        _engine.release()
        raise
    return memoryview(ffi.buffer(ffi.gc(made[0], free, nbytes), nbytes))


class Probe(NamedTuple):
    """Whose multicast has not been heard of here."""

    unheard: int  # ranks
    unheard_full: int  # ranks, at the length of a full datagram
    rank: int | None  # the first of these


class Endpoint:
    """This process's endpoint of a team, a set of processes.

    After fork a child must not close it, nor anything on it.
    """

    def __init__(
        self,
        config: Config,
        draft: Draft,
        chunk_bytes: int,
        specific: Mapping[str, object],
    ) -> None:
        options = ffi.new(
            "struct mmc_team_options *",
            {
                "rank": draft.rank,
                "nranks": len(draft.hosts),
                "group": draft.group,
                "subgroups": config.subgroups,
                "ttl": config.ttl,
                "chunk_bytes": chunk_bytes,
                "checksum": CHECKSUMS[config.checksum],
                "channel": int(draft.name, 16),
                "fault": config.fault.encode(),
                **specific,
            },
        )
        made = ffi.new("struct mmc_team **")
        engine = _engine.acquire()
        try:
            check(lib.mmc_team_create(engine, options, made), "no endpoint")
        except TransportError:
            _engine.release()
            raise
        self.c = made[0]
        self.rank = draft.rank
        self.nranks = len(draft.hosts)
        self.chunk_bytes = chunk_bytes
        self.rdma = specific.get("transport") == TRANSPORT_VERBS

    def address(self) -> bytes:
        """Return what the other ranks need to connect."""
        address = ffi.new("uint8_t[]", lib.mmc_team_address_bytes(self.c))
        lib.mmc_team_address(self.c, address)
        return bytes(ffi.buffer(address))

    def connect(self, addresses: bytes) -> None:
        """Take the addresses of all ranks, in rank order."""
        check(lib.mmc_team_connect(self.c, addresses), "cannot join the group")

    def probe(self, slice_s: float) -> Probe:
        """Multicast probes and listen for those of the others, at most so long."""
        probe = ffi.new("struct mmc_probe *")
        status = lib.mmc_team_probe(self.c, int(slice_s * 1e9), probe)
        check(status, "cannot probe the network")
        rank = None if probe.rank == _NOBODY else int(probe.rank)
        return Probe(int(probe.unheard), int(probe.unheard_full), rank)

    def close(self) -> None:
        """Close the endpoint. Its streams must be closed."""
        lib.mmc_team_close(self.c)
        _engine.release()


class Waiting(NamedTuple):
    """What a request waits for."""

    waited_s: float
    entered: bool
    rank: int | None
    missing_chunks: int


class Stream:
    """A sequence of operations that all ranks start in the same order."""

    def __init__(self, endpoint: Endpoint, config: Config, channel: int) -> None:
        options = ffi.new(
            "struct mmc_stream_options *",
            {
                "channel": channel,
                "chains": min(config.chains, endpoint.nranks),
                "window_bytes": config.window_bytes,
                "eager_bytes": config.eager_bytes,
                "repair": _REPAIRS[_repair(endpoint, config)],
                "timeout_ns": _ns(config.timeout),
                "entry_timeout_ns": _ns(config.entry_timeout),
            },
        )
        made = ffi.new("struct mmc_stream **")
        check(lib.mmc_stream_create(endpoint.c, options, made), "no stream")
        self.c = made[0]
        self.endpoint = endpoint
        self.config = config
        self.first_reason = ""  # why an operation failed here, if one did

    def counters(self) -> dict[str, int]:
        """Return all counters by name."""
        names = counter_names()
        values = ffi.new("uint64_t[]", len(names))
        lib.mmc_stream_counters(self.c, values)
        return {name: int(values[index]) for index, name in enumerate(names)}

    def poisoned(self) -> bool:
        """Return whether an operation of the stream has failed."""
        return self._error() != 0

    def deserted(self) -> bool:
        """Return whether one has failed because a rank gives no answer."""
        return self._error() == -lib.MMC_ENOANSWER

    def _error(self) -> int:
        failure = ffi.new("struct mmc_failure *")
        lib.mmc_stream_failure(self.c, failure)
        return int(failure.error)

    def close(self) -> None:
        """Free the stream; peers must have finished or failed."""
        lib.mmc_stream_close(self.c)


def _repair(endpoint: Endpoint, config: Config) -> str:
    if config.repair != "auto":
        return config.repair
    return "read" if endpoint.rdma else "nak"


def _ns(seconds: float) -> int:
    return 0 if seconds == float("inf") else int(seconds * 1e9)


# ---- operations --------------------------------------------------------------


class Request:
    """One operation of a stream, from before its start until it is over.

    Made before anything is started, so that no exception, as Ctrl-C may raise
    anywhere, can separate a started operation from the object that can end it:
    ``cancel`` in an ``except`` clause, ``free`` in a ``finally``.
    """

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._slot = ffi.new("struct mmc_request **")
        self._block_bytes = 0

    def allgather(self, send: int | None, recv: int, block_bytes: int) -> bool:
        """Start an Allgather and wait a little.

        Parameters
        ----------
        send
            Address of this rank's block; None if it lies in its place in `recv`.
        recv
            Address of the place for all blocks.
        block_bytes
            Bytes of one block.

        Returns
        -------
        bool
            Whether it is over. If not, the buffers stay the library's.
        """
        self._block_bytes = block_bytes
        status = lib.mmc_allgather(
            self._stream.c,
            ffi.NULL if send is None else ffi.cast("void *", send),
            ffi.cast("void *", recv),
            block_bytes,
            _SLICE_NS,
            self._slot,
        )
        return self._is_over(status)

    def wait(self) -> bool:
        """Wait a little; return whether the operation is over."""
        return self._is_over(lib.mmc_request_wait(self._slot[0], _SLICE_NS))

    def waiting(self) -> Waiting:
        """Return what an operation that is not over waits for."""
        waiting = ffi.new("struct mmc_waiting *")
        lib.mmc_request_waiting(self._slot[0], waiting)
        return Waiting(
            waited_s=waiting.waited_ns / 1e9,
            entered=bool(waiting.entered),
            rank=None if waiting.rank == _NOBODY else waiting.rank,
            missing_chunks=waiting.missing_chunks,
        )

    def cancel(self) -> None:
        """Give up what was started and is not over."""
        if self._slot[0] != ffi.NULL:
            lib.mmc_request_cancel(self._slot[0])

    def free(self) -> None:
        """Free what there is."""
        lib.mmc_request_free(self._slot[0])
        self._slot[0] = ffi.NULL

    def _is_over(self, status: int) -> bool:
        if status == lib.MMC_EAGAIN:
            return False
        if status < 0:
            # Read before free() forgets it; over, so there is nothing to cancel.
            error = self._error(status)
            self.free()
            raise error
        return True

    def _error(self, status: int) -> Error:
        more = _last_error()
        failure = ffi.new("struct mmc_failure *")
        if status == -lib.MMC_EPOISONED:
            return _poisoned(self._stream, failure)
        if self._slot[0] == ffi.NULL:
            text = f"Allgather was not started: {string(lib.mmc_strerror(status))}"
            return Error(f"{text} ({more})" if more else text)
        lib.mmc_request_failure(self._slot[0], failure)
        return _failed(self._stream, self._block_bytes, failure, more)


_KINDS = {
    -lib.MMC_ENOANSWER: TimedOut,
    -lib.MMC_ENOPROGRESS: TimedOut,
    -lib.MMC_ENOENTRY: TimedOut,
    -lib.MMC_EIO: TransportError,
    -lib.MMC_ENODEV: TransportError,
}


def _failed(stream: Stream, block_bytes: int, failure: CData, seen: str) -> Error:
    """Say of an operation what happened, to whom, what was seen, and what to do."""
    reason = _reason(stream, failure, seen)
    stream.first_reason = stream.first_reason or reason
    missing = ""
    if failure.missing_chunks:
        missing = f". {failure.missing_chunks} chunks were missing here"
    return _KINDS.get(failure.error, Error)(
        f"Allgather of {block_bytes} bytes a rank failed on {_here(stream)}, "
        f"operation {failure.epoch}: {reason}{missing}",
        epoch=int(failure.epoch),
        ranks=_culprits(failure),
        missing_chunks=int(failure.missing_chunks),
    )


def _poisoned(stream: Stream, failure: CData) -> Error:
    """Say which earlier operation made all later ones fail."""
    lib.mmc_stream_failure(stream.c, failure)
    reason = stream.first_reason or _reason(stream, failure, _last_error())
    return Error(
        f"this communicator is unusable on {_here(stream)} since its operation "
        f"{failure.epoch} failed: {reason}. Free it and make another",
        epoch=int(failure.epoch),
        ranks=_culprits(failure),
    )


def _here(stream: Stream) -> str:
    return f"rank {stream.endpoint.rank} of {stream.endpoint.nranks}"


def _culprits(failure: CData) -> tuple[int, ...]:
    return () if failure.culprit == _NOBODY else (int(failure.culprit),)


def _reason(stream: Stream, failure: CData, seen: str) -> str:
    """Say what failed; `seen` is what this rank's own device said, or ""."""
    who = " and ".join(f"rank {rank}" for rank in _culprits(failure)) or "a rank"
    timeout_s, entry_timeout_s = stream.config.timeout, stream.config.entry_timeout
    if failure.error == -lib.MMC_ENOANSWER:
        how = f"({seen})" if seen else f"within TIMEOUT ({timeout_s:g} s)"
        return (
            f"no answer from {who} {how}; see whether its process still runs and its "
            "network works"
        )
    if failure.error == -lib.MMC_ENOPROGRESS:
        return (
            f"all ranks had entered, but nothing new came from {who} within TIMEOUT "
            f"({timeout_s:g} s); see whether the network passes multicast, or set a "
            "longer MPIMCAST_TIMEOUT"
        )
    if failure.error == -lib.MMC_ENOENTRY:
        return (
            f"{who} did not enter the operation within ENTRY_TIMEOUT "
            f"({entry_timeout_s:g} s)"
        )
    if failure.error == -lib.MMC_EMISMATCH:
        sizes = ""
        if failure.block_bytes_max:
            low, high = failure.block_bytes_min, failure.block_bytes_max
            sizes = f": blocks are of {low} to {high} bytes"
        return f"the ranks disagree{sizes}; all must pass equally many bytes"
    if failure.error == -lib.MMC_ECANCELED:
        return f"{who} was interrupted and gave the operation up"
    what = f"{string(lib.mmc_strerror(failure.error))}, at {who}"
    return f"{what} ({seen})" if seen else what
