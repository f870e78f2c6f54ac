# SPDX-License-Identifier: BSD-3-Clause
"""Opens a transport, on all ranks or on none."""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from mpimcast._mpi.agreement import exchange, together
from mpimcast._native.draft import Draft
from mpimcast._native.transport import wanted
from mpimcast._session import teams
from mpimcast._session.opening import Opening
from mpimcast._support.naming import listed, minority
from mpimcast.errors import ConfigError, TransportError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mpimcast._mpi.private import Private
    from mpimcast._native.stream import Stream
    from mpimcast._native.transport import Transport
    from mpimcast._settings.config import Config

# How long each round of probing listens: most networks need only the first, but a
# switch that has just learnt of a group may take longer.
PROBES_S = (0.005, 0.02, 0.08, 0.3)


class OneHost(TransportError):
    """All ranks share a host, where TRANSPORT=auto leaves data to the MPI library."""


class Opened(NamedTuple):
    """A communicator's stream and team, just opened."""

    stream: Stream
    team: teams.Team  # must be released after the stream is closed
    refused: str  # why a better transport was not taken; empty if none is better


def open_stream(private: Private, config: Config) -> Opened:
    """Open a stream over the best transport, on all ranks or on none.

    Communicators of the same processes share a team. Raises the same TransportError
    on all ranks, which is a OneHost if they chose to open none.
    """
    with contextlib.ExitStack() as undo:
        known = teams.find(private, config)
        if known is not None:
            undo.callback(teams.release, known)
        _, facts = together(private, config, lambda: (None, introduce(config, known)))
        _check_wire(facts)
        draft = draft_of(facts, private.Get_rank())
        if config.transport == "auto" and draft.same_host:
            raise OneHost(
                "all ranks share one host, where the MPI library's shared memory is "
                "faster; TRANSPORT=udp multicasts there too"
            )
        refused = ""
        if known is not None and all(fact["team"] == known.name for fact in facts):
            team = known
        else:
            undo.close()
            team, refused = _open_team(private, config, draft, undo)
        channel = int(facts[0]["channel"], 16)
        stream, _ = together(
            private, config, lambda: _create_stream(team, config, channel, undo)
        )
        undo.pop_all()
    return Opened(stream, team, refused)


# ---- the ranks' facts --------------------------------------------------------


def introduce(config: Config, team: teams.Team | None = None) -> dict[str, Any]:
    """Return this rank's facts for opening a team; rank 0's random draws count."""
    try:
        from mpimcast._native import core, devices
    except ImportError as error:
        raise TransportError(
            f"mpimcast's C library cannot be loaded: {error}"
        ) from error
    interfaces = devices.list_interfaces(config)
    return {
        "wire": core.wire_version(),
        "host": host_key(),
        "machine": machine_key(),
        "processors": f"{sum(1 << number for number in os.sched_getaffinity(0)):x}",
        "addresses": [str(each.address.ip) for each in interfaces],
        "team": team.name if team else "",
        "name": secrets.token_hex(8),
        "channel": secrets.token_hex(8),
        "group": config.group.draw(config.subgroups),
        "port": config.group_ports.draw(),
        # Only privileged users may use keys in which bit 31 is set.
        "qkey": secrets.randbelow(2**31),
    }


def host_key() -> str:
    """Return a key that is equal in processes that reach each other's loopback."""
    namespace = Path("/proc/self/ns/net")
    # A kernel without namespaces has one network.
    network = namespace.stat().st_ino if namespace.exists() else 0
    return hashlib.sha256(f"{_boot_id()} {network}".encode()).hexdigest()[:16]


def machine_key() -> str:
    """Return a key that is equal in processes that share processors."""
    return hashlib.sha256(_boot_id().encode()).hexdigest()[:8]


def _boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def is_crowded(facts: Sequence[dict[str, Any]]) -> bool:
    """Return whether some machine has more ranks than processors for them."""
    nranks = Counter(fact["machine"] for fact in facts)
    processors: dict[str, int] = dict.fromkeys(nranks, 0)
    for fact in facts:
        processors[fact["machine"]] |= int(fact["processors"], 16)
    return any(
        processors[machine].bit_count() < count for machine, count in nranks.items()
    )


def _check_wire(facts: Sequence[dict[str, Any]]) -> None:
    """Raise on all ranks if their versions of the wire format differ."""
    versions = {rank: fact["wire"] for rank, fact in enumerate(facts)}
    if len(set(versions.values())) > 1:
        raise TransportError(
            f"the ranks use different versions of the wire format: {listed(versions)}; "
            "install the same version of mpimcast everywhere",
            ranks=minority(versions),
        )


def draft_of(facts: Sequence[dict[str, Any]], rank: int) -> Draft:
    """Return the draft of a team from all ranks' facts, as seen by rank `rank`."""
    first = facts[0]
    return Draft(
        rank=rank,
        hosts=tuple(fact["host"] for fact in facts),
        crowded=is_crowded(facts),
        addresses=tuple(first["addresses"]),
        name=first["name"],
        group=first["group"],
        port=first["port"],
        qkey=first["qkey"],
    )


# ---- teams -------------------------------------------------------------------


def _open_team(
    private: Private, config: Config, draft: Draft, undo: contextlib.ExitStack
) -> tuple[teams.Team, str]:
    """Open a team over the first transport that works.

    Return the team, and in words why better transports do not work.
    """
    failures: list[str] = []
    for kind in wanted(config):
        if config.progress_thread == "off" and kind.needs_thread:
            raise ConfigError(
                "; ".join(["PROGRESS_THREAD=off works over verbs only", *failures])
            )
        try:
            team = _open_over(private, config, kind(config, draft), undo)
        except TransportError as error:
            failures.append(f"{kind.name}: {error}")
            last = error
        else:
            return team, "; ".join(failures)
    if len(failures) == 1:
        raise last
    raise TransportError("; ".join(failures))


def _open_over(
    private: Private,
    config: Config,
    transport: Transport,
    undo: contextlib.ExitStack,
) -> teams.Team:
    """Open a team whose multicast reaches all ranks, with smaller chunks if need be."""

    def step(act: Callable[[], object]) -> list[Any]:
        _, results = together(private, config, lambda: (None, act()))
        return results

    everybody = tuple(range(private.Get_size()))
    opening = Opening(transport, [everybody], everybody, step)
    most = transport.choose(opening.find())
    smaller = (
        []
        if config.chunk_bytes
        else [n for n in transport.smaller_chunk_bytes if n < most]
    )
    for chunk_bytes in [most, *smaller]:
        with contextlib.ExitStack() as attempt:
            attempt.callback(opening.close)
            opening.create(chunk_bytes)
            opening.connect()
            team = teams.add(private, config, opening.hand_over(), transport)
            attempt.callback(teams.release, team)
            failure, narrow = _probe(private, config, team)
            if not failure:
                undo.push(attempt.pop_all())
                return team
        if not narrow:
            break
    raise TransportError(failure)


def _probe(private: Private, config: Config, team: teams.Team) -> tuple[str, bool]:
    """Find out, on all ranks alike, whether every rank hears every other.

    Returns
    -------
    failure : str
        What does not arrive; empty if everything does.
    narrow : bool
        Whether short datagrams arrive everywhere.
    """
    for slice_s in PROBES_S:
        probe = team.endpoint.probe(slice_s)
        probes = exchange(private, probe, config.timeout)
        deaf = [rank for rank, (_, full, _) in enumerate(probes) if full]
        if not deaf:
            return "", False
    narrow = not any(unheard for unheard, _, _ in probes)
    length = f"in chunks of {team.endpoint.chunk_bytes} bytes " if narrow else ""
    failure = (
        f"multicast from rank {probes[deaf[0]][2]} {length}does not reach rank "
        f"{deaf[0]}; check that the network passes multicast and the MTU is right"
    )
    return failure, narrow


def _create_stream(
    team: teams.Team, config: Config, channel: int, undo: contextlib.ExitStack
) -> tuple[Stream, None]:
    """Create a stream on a connected team."""
    from mpimcast._native.stream import Stream

    stream = Stream(team.endpoint, config, channel)
    undo.callback(stream.close)
    return stream, None
