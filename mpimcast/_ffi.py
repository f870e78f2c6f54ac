# SPDX-License-Identifier: BSD-3-Clause
"""The C library in Python's terms: lifetimes, and errors instead of codes.

With flight.py, devices.py and sim.py the only importer of ``mpimcast._core``. Nothing
here knows MPI.
"""

from __future__ import annotations

import os
import threading
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from mpimcast._core import ffi, lib
from mpimcast.errors import TransportError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mpimcast._core import _CData as CData
    from mpimcast.config import Config
    from mpimcast.transport import Draft

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
        raise ValueError(last_error())


def counter_names() -> list[str]:
    """List the counters of a stream."""
    count = lib.mmc_counter_count()
    return [string(lib.mmc_counter_name(index)) for index in range(count)]


def string(text: CData) -> str:
    return bytes(ffi.string(text)).decode(errors="replace")


def last_error() -> str:
    return string(lib.mmc_last_error())


class PortTakenError(TransportError):
    """Another program of this host has the port of the groups for itself."""


def check(status: int, what: str) -> None:
    """Raise what a negative `status` of a call other than an operation means."""
    if status >= 0:
        return
    text = f"{what}: {string(lib.mmc_strerror(status))}"
    more = last_error()
    kind = PortTakenError if status == -lib.MMC_EADDRINUSE else TransportError
    raise kind(f"{text} ({more})" if more else text)


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


class Heard(NamedTuple):
    """What has come of another rank in a survey."""

    ndistinct: int  # numbers
    nduplicates: int  # of these
    longest_bytes: int  # the longest payload
    nanswers: int
    round_trip_us: int  # the least that an answer took
    first_ns: int  # when the first number came, and the last
    last_ns: int


class Detour(NamedTuple):
    """Why blocks go from neighbour to neighbour by unicast."""

    epoch: int  # of the first operation in which they do
    rank: int  # which gets no multicast of the sender
    sender: int | None  # None: of any rank

    def __str__(self) -> str:
        """Say so, after "since"."""
        sender = "any rank" if self.sender is None else f"rank {self.sender}"
        return (
            f"operation {self.epoch} blocks go round a ring by unicast, because rank "
            f"{self.rank} hears no multicast of {sender}"
        )


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
                "unattended": config.progress_thread == "off",
                "crowded": draft.crowded,
                "timeout_ns": _ns(config.timeout),
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
        self._engine = engine
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

    def begin_survey(self, ident: int, nnumbers: int) -> None:
        """Begin to count others' datagrams with numbers below `nnumbers`."""
        status = lib.mmc_team_survey_begin(self.c, ident, nnumbers)
        check(status, "cannot survey the network")

    def send_survey(
        self, peer: int | None, numbers: range, nbytes: int, *, asks: bool = False
    ) -> None:
        """Send numbered datagrams, to one rank or, by multicast, to all.

        Parameters
        ----------
        peer
            The rank, or None for all.
        numbers
            One after the other.
        nbytes
            Of payload.
        asks
            Whether they go the way of control, and want an answer.
        """
        salvo = {
            "peer": _NOBODY if peer is None else peer,
            "first": numbers.start,
            "count": len(numbers),
            "nbytes": nbytes,
            "asks": asks,
        }
        status = lib.mmc_team_survey_send(self.c, ffi.new("struct mmc_salvo *", salvo))
        check(status, "cannot send in a survey")

    def listen_survey(self, slice_s: float) -> list[Heard]:
        """Listen for so long; return what has come, by rank, since the beginning."""
        heard = ffi.new("struct mmc_hearing[]", self.nranks)
        status = lib.mmc_team_survey_listen(self.c, int(slice_s * 1e9), heard)
        check(status, "cannot listen in a survey")
        return [
            Heard(*(int(getattr(each, name)) for name in Heard._fields))
            for each in heard
        ]

    def counters(self) -> Counter[str]:
        """Count what has come and is of no stream."""
        return _counters(lib.mmc_team_counters, self.c)

    def move(self) -> None:
        """Move on what can be without waiting, where no thread does so."""
        lib.mmc_engine_move(self._engine)

    def close(self) -> None:
        """Close the endpoint. Its streams must be closed."""
        lib.mmc_team_close(self.c)
        _engine.release()


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
                "late_timeout_ns": _ns(config.late_timeout),
            },
        )
        made = ffi.new("struct mmc_stream **")
        check(lib.mmc_stream_create(endpoint.c, options, made), "no stream")
        self.c = made[0]
        self.channel = channel
        self.endpoint = endpoint
        self.config = config
        # Why an operation failed here, if one did, and which ranks that is about.
        self.first_failure: tuple[str, tuple[int, ...]] | None = None

    def counters(self) -> Counter[str]:
        """Return all counters by name."""
        return _counters(lib.mmc_stream_counters, self.c)

    def poisoned(self) -> bool:
        """Return whether an operation of the stream has failed."""
        return self._error() != 0

    def deserted(self) -> bool:
        """Return whether one has failed because a rank does not answer any more.

        So it is with one that cannot send: what it had to say it has said.
        """
        return self._error() in (
            -lib.MMC_EIO,
            -lib.MMC_ENOANSWER,
            -lib.MMC_EGONE,
            -lib.MMC_ELATE,
        )

    def _error(self) -> int:
        failure = ffi.new("struct mmc_failure *")
        lib.mmc_stream_failure(self.c, failure)
        return int(failure.error)

    def leave(self) -> None:
        """Start nothing any more: others that wait for a later operation fail."""
        lib.mmc_stream_leave(self.c)

    def detours(self) -> bool:
        """Return whether nothing is multicast for the time being."""
        return bool(lib.mmc_stream_unicast_epoch(self.c))

    def detour(self) -> Detour:
        """Return since when, and why, nothing is multicast."""
        detour = ffi.new("struct mmc_detour *")
        lib.mmc_stream_detour(self.c, detour)
        sender = None if detour.sender == _NOBODY else int(detour.sender)
        return Detour(int(detour.epoch), int(detour.rank), sender)

    def close(self) -> None:
        """Free the stream; peers must have finished or failed."""
        lib.mmc_stream_close(self.c)


def _counters(read: Callable[[CData, CData], None], of: CData) -> Counter[str]:
    names = counter_names()
    values = ffi.new("uint64_t[]", len(names))
    read(of, values)
    return Counter(dict(zip(names, map(int, values), strict=True)))


def _repair(endpoint: Endpoint, config: Config) -> str:
    if config.repair != "auto":
        return config.repair
    return "read" if endpoint.rdma else "nak"


def _ns(seconds: float) -> int:
    return 0 if seconds == float("inf") else int(seconds * 1e9)


class Ends:
    """The ends of operations that tell, in this process, for one thread to await."""

    def __init__(self) -> None:
        self._engine = _engine.acquire()
        self._nended = ffi.new("uint64_t *")

    def wait(self) -> None:
        """Sleep until some have ended since the last time, or until `rouse`."""
        status = lib.mmc_engine_await(self._engine, self._nended)
        check(status, "nothing to wait for")

    def rouse(self) -> None:
        """Wake who sleeps in `wait`, or the next who is about to."""
        lib.mmc_engine_rouse(self._engine)

    def close(self) -> None:
        """Need the engine no more."""
        _engine.release()


def unbind_thread() -> None:
    """Let this thread run beside the core that its process computes on."""
    lib.mmc_thread_unbind()
