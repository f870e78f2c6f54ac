# SPDX-License-Identifier: BSD-3-Clause
"""This process's endpoint of a team: it connects, probes and surveys the network."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mpimcast._core import ffi, lib
from mpimcast._native.core import (
    CHECKSUMS,
    NOBODY,
    TRANSPORT_VERBS,
    check,
    counters,
    nanoseconds,
)
from mpimcast._native.engine import engine
from mpimcast.errors import TransportError

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Mapping

    from mpimcast._native.draft import Draft
    from mpimcast._settings.config import Config


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
                "timeout_ns": nanoseconds(config.timeout),
                **specific,
            },
        )
        made = ffi.new("struct mmc_team **")
        self._engine = engine.acquire()
        try:
            check(
                lib.mmc_team_create(self._engine, options, made),
                "cannot open an endpoint",
            )
        except TransportError:
            engine.release()
            raise
        self.c = made[0]
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
        check(
            lib.mmc_team_connect(self.c, addresses), "cannot connect to the other ranks"
        )

    def probe(self, slice_s: float) -> Probe:
        """Multicast probes, and listen to the others' for at most `slice_s`."""
        probe = ffi.new("struct mmc_probe *")
        status = lib.mmc_team_probe(self.c, int(slice_s * 1e9), probe)
        check(status, "cannot probe the network")
        rank = None if probe.rank == NOBODY else int(probe.rank)
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
            "peer": NOBODY if peer is None else peer,
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
        return counters(lib.mmc_team_counters, self.c)

    def move(self) -> None:
        """Make progress without waiting, for use where no thread makes it."""
        lib.mmc_engine_move(self._engine)

    def close(self) -> None:
        """Close the endpoint, whose streams must have been closed."""
        lib.mmc_team_close(self.c)
        engine.release()
