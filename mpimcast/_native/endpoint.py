# SPDX-License-Identifier: BSD-3-Clause
"""This rank's endpoint of a team: it connects, probes and surveys the network."""

from __future__ import annotations

import ipaddress
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
from mpimcast._native.runner import Runner
from mpimcast.errors import TransportError
from mpimcast.stranger import Stranger

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Mapping

    from mpimcast._core import _CData as CData
    from mpimcast._native.draft import Draft
    from mpimcast._native.protection import Secret
    from mpimcast._settings.config import Config


# The causes for which datagrams are refused, in the order of C's enum mmc_refusal.
CAUSES = ("foreign", "malformed", "corrupt", "forged", "replayed")


class Probe(NamedTuple):
    """Counts of the probes that have not arrived here.

    Each rank multicasts a short probe, and one of full size, to each subgroup.

    Attributes
    ----------
    unheard : int
        The number of ranks from which a short probe is missing.
    unheard_full : int
        The number of ranks from which a probe of full size is missing.
    rank : int or None
        The first rank from which a probe of full size is missing.
    """

    unheard: int
    unheard_full: int
    rank: int | None


class Heard(NamedTuple):
    """The datagrams that this rank has received from one other rank in a survey.

    Attributes
    ----------
    ndistinct : int
        How many of the other rank's numbers have arrived.
    nduplicates : int
        How many datagrams repeated a number that had arrived before.
    longest_bytes : int
        The longest payload.
    nanswers : int
        How many answers the other rank has given to this rank's control messages.
    round_trip_us : int
        The shortest time from a control message to its answer.
    first_ns, last_ns : int
        When the first and the last of the distinct numbers arrived, by this rank's
        monotonic clock.
    """

    ndistinct: int
    nduplicates: int
    longest_bytes: int
    nanswers: int
    round_trip_us: int
    first_ns: int
    last_ns: int


class Endpoint:
    """This rank's endpoint of a team.

    A child of fork() must close neither the endpoint nor its streams.

    Parameters
    ----------
    config
        The settings.
    draft
        The team.
    chunk_bytes
        The payload of a full datagram.
    specific
        The fields of C's struct mmc_team_options that only this transport needs.
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
                "proxy": config.proxy_name.encode() if config.has_proxy else b"",
                "unattended": config.progress_thread == "off",
                "crowded": draft.crowded,
                "pair": draft.pair,
                "timeout_ns": nanoseconds(config.timeout),
                **({} if draft.protection is None else draft.protection.options()),
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
        nworkers = config.subgroups if specific.get("workers") else 0
        # How many processors this rank has beside its own and those of its workers.
        self.nspare = draft.nprocessors - 1 - nworkers
        over_verbs = specific.get("transport") == TRANSPORT_VERBS
        # The packets of a read go back to the first that is lost, which takes long over
        # a long link, and pairs are for those.
        self.reads_memory = over_verbs and draft.protection is None and not draft.pair

    def runner(self) -> Runner:
        """Return what runs this rank's operations over the network."""
        found = ffi.new("struct mmc_runner *")
        lib.mmc_team_runner(self.c, found)
        return Runner.of(found)

    def address(self) -> bytes:
        """Return the address that the other ranks need to connect."""
        address = ffi.new("uint8_t[]", lib.mmc_team_address_bytes(self.c))
        lib.mmc_team_address(self.c, address)
        return bytes(ffi.buffer(address))

    def protect(self, secret: Secret) -> None:
        """Take the secret of a protected team, which is wiped."""
        check(
            lib.mmc_team_protect(self.c, secret.c),
            "cannot protect the team's datagrams",
        )

    def connect(self, addresses: bytes) -> None:
        """Connect to all ranks, whose addresses follow each other in rank order."""
        check(
            lib.mmc_team_connect(self.c, addresses), "cannot connect to the other ranks"
        )

    def probe(self, slice_s: float) -> Probe:
        """Multicast probes, and listen for those of other ranks up to `slice_s`.

        Return early if all have arrived, in this call or in earlier ones.
        """
        probe = ffi.new("struct mmc_probe *")
        status = lib.mmc_team_probe(self.c, int(slice_s * 1e9), probe)
        check(status, "cannot probe the network")
        rank = None if probe.rank == NOBODY else int(probe.rank)
        return Probe(int(probe.unheard), int(probe.unheard_full), rank)

    def begin_survey(self, ident: int, nnumbers: int) -> None:
        """Begin to count other ranks' numbered datagrams.

        Parameters
        ----------
        ident
            Identifies the survey: equal on all ranks, and in no earlier survey.
        nnumbers
            The datagrams have the numbers below this one.
        """
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
        burst = {
            "peer": NOBODY if peer is None else peer,
            "first": numbers.start,
            "count": len(numbers),
            "nbytes": nbytes,
            "asks": asks,
        }
        status = lib.mmc_team_survey_send(self.c, ffi.new("struct mmc_burst *", burst))
        check(status, "cannot send in a survey")

    def listen_survey(self, slice_s: float) -> list[Heard]:
        """Listen for `slice_s`; return what has arrived in the survey, by rank."""
        heard = ffi.new("struct mmc_hearing[]", self.nranks)
        status = lib.mmc_team_survey_listen(self.c, int(slice_s * 1e9), heard)
        check(status, "cannot listen in a survey")
        return [
            Heard(*(int(getattr(each, name)) for name in Heard._fields))
            for each in heard
        ]

    def counters(self) -> Counter[str]:
        """Return the counters of traffic that belongs to no stream."""
        return counters(lib.mmc_team_counters, self.c)

    def strangers(self) -> list[Stranger]:
        """Return the addresses from which refused datagrams came lately."""
        found = ffi.new("struct mmc_stranger[]", lib.MMC_STRANGERS_MAX)
        count = lib.mmc_team_strangers(self.c, found)
        return [_stranger(found[index]) for index in range(count)]

    def make_progress(self) -> None:
        """Make progress, without waiting, where no thread of the C library does."""
        lib.mmc_engine_make_progress(self._engine)

    def close(self) -> None:
        """Close the endpoint. Its streams must have been closed before."""
        lib.mmc_team_close(self.c)
        engine.release()


def _stranger(found: CData) -> Stranger:
    """Return a stranger as C describes it."""
    address = f"{ipaddress.IPv4Address(found.ip)}:{found.port}" if found.ip else ""
    return Stranger(
        None if found.rank == NOBODY else int(found.rank),
        address,
        {cause: int(found.ndatagrams[at]) for at, cause in enumerate(CAUSES)},
        int(found.first_ns),
        int(found.last_ns),
    )
