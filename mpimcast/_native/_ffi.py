# SPDX-License-Identifier: BSD-3-Clause
"""The C library wrapped for Python: object lifetimes, and exceptions for error codes.

Only this module, flight.py, devices.py and sim.py import ``mpimcast._core``. Nothing
here knows about MPI.
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
    from mpimcast._native.transport import Draft
    from mpimcast._settings.config import Config

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
    """Return the version of the wire format and of the state machine."""
    return lib.mmc_wire_version()


def check_fault(fault: str) -> None:
    """Raise ValueError, with the reason, unless `fault` is a valid FAULT setting."""
    if lib.mmc_fault_check(fault.encode()) != 0:
        raise ValueError(last_error())


def counter_names() -> list[str]:
    """Return the names of a stream's counters."""
    count = lib.mmc_counter_count()
    return [string(lib.mmc_counter_name(index)) for index in range(count)]


def string(text: CData) -> str:
    return bytes(ffi.string(text)).decode(errors="replace")


def last_error() -> str:
    return string(lib.mmc_last_error())


class PortTakenError(TransportError):
    """Another program on this host holds the groups' port exclusively."""


def check(status: int, what: str) -> None:
    """Raise the error for a negative `status` of any call but an operation's."""
    if status >= 0:
        return
    text = f"{what}: {string(lib.mmc_strerror(status))}"
    more = last_error()
    kind = PortTakenError if status == -lib.MMC_EADDRINUSE else TransportError
    raise kind(f"{text} ({more})" if more else text)


# ---- engine, endpoints, streams -----------------------------------------------


class _Engine:
    """This process's engine: created for its first user, destroyed with its last."""

    def __init__(self) -> None:
        # Reentrant: a garbage collection under the lock may free engine memory.
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
    """Return engine memory, which is freed when nothing refers to it any more."""
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
    """The ranks whose multicast has not arrived here."""

    unheard: int  # number of ranks of which some subgroup's probe is missing
    unheard_full: int  # number of ranks of which some full-size probe is missing
    rank: int | None  # the first rank of which some full-size probe is missing


class Heard(NamedTuple):
    """The datagrams that a rank received from another one in a survey."""

    ndistinct: int  # distinct numbers
    nduplicates: int  # datagrams whose number had arrived before
    longest_bytes: int  # the longest payload
    nanswers: int
    round_trip_us: int  # the shortest of all answers
    first_ns: int  # when the first number arrived
    last_ns: int  # when the last number arrived


class Detour(NamedTuple):
    """Why blocks go from neighbour to neighbour by unicast."""

    epoch: int  # the first operation without multicast
    rank: int  # the rank that receives no multicast of the sender
    sender: int | None  # None: it receives multicast of no rank

    def __str__(self) -> str:
        """Return the reason as words that follow "since"."""
        sender = "any rank" if self.sender is None else f"rank {self.sender}"
        return (
            f"operation {self.epoch} blocks go round a ring by unicast, because rank "
            f"{self.rank} hears no multicast of {sender}"
        )


class Endpoint:
    """This process's endpoint of a team, which is a set of processes.

    A child of fork() must close neither the endpoint nor its streams.
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
        """Return the address that the other ranks need to connect."""
        address = ffi.new("uint8_t[]", lib.mmc_team_address_bytes(self.c))
        lib.mmc_team_address(self.c, address)
        return bytes(ffi.buffer(address))

    def connect(self, addresses: bytes) -> None:
        """Connect to all ranks, given their addresses in rank order."""
        check(lib.mmc_team_connect(self.c, addresses), "cannot join the group")

    def probe(self, slice_s: float) -> Probe:
        """Multicast probes, and listen to the others' for at most `slice_s`."""
        probe = ffi.new("struct mmc_probe *")
        status = lib.mmc_team_probe(self.c, int(slice_s * 1e9), probe)
        check(status, "cannot probe the network")
        rank = None if probe.rank == _NOBODY else int(probe.rank)
        return Probe(int(probe.unheard), int(probe.unheard_full), rank)

    def begin_survey(self, ident: int, nnumbers: int) -> None:
        """Begin to count other ranks' datagrams with numbers below `nnumbers`."""
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
            The datagrams' numbers, which are consecutive.
        nbytes
            The payload of each datagram.
        asks
            Whether to send them as control messages that ask for an answer.
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
        """Listen for `slice_s`; return by rank what has arrived in the survey."""
        heard = ffi.new("struct mmc_hearing[]", self.nranks)
        status = lib.mmc_team_survey_listen(self.c, int(slice_s * 1e9), heard)
        check(status, "cannot listen in a survey")
        return [
            Heard(*(int(getattr(each, name)) for name in Heard._fields))
            for each in heard
        ]

    def counters(self) -> Counter[str]:
        """Return the counters of what arrived and belongs to no stream."""
        return _counters(lib.mmc_team_counters, self.c)

    def move(self) -> None:
        """Make progress without waiting, for use where no thread makes it."""
        lib.mmc_engine_move(self._engine)

    def close(self) -> None:
        """Close the endpoint, whose streams must have been closed."""
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
        # The first failure on this rank, if any: its reason, and the ranks at fault.
        self.first_failure: tuple[str, tuple[int, ...]] | None = None

    def counters(self) -> Counter[str]:
        """Return all counters by name."""
        return _counters(lib.mmc_stream_counters, self.c)

    def poisoned(self) -> bool:
        """Return whether an operation of the stream has failed."""
        return self._error() != 0

    def deserted(self) -> bool:
        """Return whether an operation failed because some rank no longer answers.

        A rank that cannot send counts as one: nothing more will arrive from it.
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
        """Start nothing more; ranks that await this one in a later operation fail."""
        lib.mmc_stream_leave(self.c)

    def detours(self) -> bool:
        """Return whether multicast is suspended for the time being."""
        return bool(lib.mmc_stream_unicast_epoch(self.c))

    def detour(self) -> Detour:
        """Return since when, and why, multicast is suspended."""
        detour = ffi.new("struct mmc_detour *")
        lib.mmc_stream_detour(self.c, detour)
        sender = None if detour.sender == _NOBODY else int(detour.sender)
        return Detour(int(detour.epoch), int(detour.rank), sender)

    def close(self) -> None:
        """Free the stream; its peers must have finished or failed."""
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
    """Notifications of this process's operations, for one thread to await."""

    def __init__(self) -> None:
        self._engine = _engine.acquire()
        self._nended = ffi.new("uint64_t *")

    def wait(self) -> None:
        """Sleep until an operation has ended since the last call, or until `rouse`."""
        status = lib.mmc_engine_await(self._engine, self._nended)
        check(status, "nothing to wait for")

    def rouse(self) -> None:
        """Wake the thread that sleeps in `wait`, or the next that enters it."""
        lib.mmc_engine_rouse(self._engine)

    def close(self) -> None:
        """Release the engine."""
        _engine.release()


def unbind_thread() -> None:
    """Let this thread leave the core that its process computes on."""
    lib.mmc_thread_unbind()
