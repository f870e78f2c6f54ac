# SPDX-License-Identifier: BSD-3-Clause
"""How ranks agree: on settings, and on opening a transport, all or none.

Every MPI call here is non-blocking, on a communicator of our own, and tested
against a deadline. Whoever decides something has the same facts as the others.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import secrets
import socket
import struct
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

from mpi4py import MPI

from mpimcast import __version__, teams
from mpimcast.errors import ConfigError, Error, TimedOut, TransportError
from mpimcast.log import logger

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mpimcast import _ffi
    from mpimcast.config import Config

_T = TypeVar("_T")

# A poll that takes longer (a stopped process, a suspended machine) counts as this.
_POLL_S_MAX = 0.1
_PAUSE_S_MIN = 20e-6
_PAUSE_S_MAX = 1e-3
_PATIENCE_S = 60.0

# What MPI may still write to although nobody waits for it any more.
_abandoned: list[object] = []

# 239.192.0.0/14, of which consecutive subgroups must stay inside; and ports below
# those that the kernel gives out by itself.
_GROUP_FIRST = 0xEFC00000
_GROUPS = 2**18 - 256
_PORT_FIRST = 20480
_PORTS = 12288

# How long each round of probing listens: most networks are through after the
# first, a switch that has just learnt of a group may take longer.
_PROBES_S = (0.005, 0.02, 0.08, 0.3)

# Chunks for paths narrower than the interface says: Ethernet, tunnels, IPv4 at all.
_CHUNKS = (1456, 1356, 1200, 508)

# Between which an interface can connect: processes of one host, or of several.
_PLACES = ("host", "network")


# ---- waiting and exchanging --------------------------------------------------


def complete(
    request: MPI.Request,
    limit_s: float,
    what: str,
    *,
    vain: Callable[[], bool] = lambda: False,
) -> None:
    """Wait for a non-blocking call.

    Parameters
    ----------
    request
        What to wait for.
    limit_s
        Seconds of observed time after which TimedOut is raised.
    what
        What is waited for, for messages.
    vain
        Asked now and then whether to give up waiting.
    """
    waited_s = 0.0
    warned = False
    pause_s = _PAUSE_S_MIN
    now_s = time.monotonic()
    try:
        while not (request.Test() or vain()):
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, _PAUSE_S_MAX)
            before_s, now_s = now_s, time.monotonic()
            waited_s += min(now_s - before_s, _POLL_S_MAX)
            if waited_s > limit_s:
                raise TimedOut(f"{what}: not all ranks took part within {limit_s:g} s")
            if waited_s > _PATIENCE_S and not warned:
                logger.warning("%s waits for other ranks since %g s", what, _PATIENCE_S)
                warned = True
    finally:
        if request:
            _abandoned.append(request)


class Entry:
    """A private duplicate of a communicator, there once all ranks have entered."""

    def __init__(self, comm: MPI.Intracomm) -> None:
        self._private, self._request = MPI.Intracomm.Idup(comm)

    def wait(self, config: Config) -> MPI.Intracomm:
        """Return the duplicate."""
        complete(self._request, config.entry_timeout, "opening a communicator")
        return MPI.Intracomm(self._private)

    def give_up(self, config: Config) -> None:
        """Let ranks that come late finish, or the library fails on freed memory."""
        _abandoned.append(self)
        with contextlib.suppress(TimedOut):
            complete(self._request, config.timeout, "closing a communicator")


def exchange(private: MPI.Intracomm, fact: object, limit_s: float) -> list[Any]:
    """Give every rank's `fact`, anything that JSON can say, to all ranks."""
    text = json.dumps(fact).encode()
    size = private.Get_size()
    lengths = bytearray(8 * size)
    what = "agreeing on a communicator"
    request = private.Iallgather(struct.pack("=q", len(text)), lengths)
    complete(request, limit_s, what)
    counts = list(struct.unpack(f"={size}q", lengths))
    texts = bytearray(sum(counts))
    request = private.Iallgatherv([text, MPI.BYTE], [texts, counts, MPI.BYTE])
    complete(request, limit_s, what)
    facts = []
    begin = 0
    for count in counts:
        facts.append(json.loads(texts[begin : begin + count]))
        begin += count
    return facts


# ---- settings ----------------------------------------------------------------


def agree(private: MPI.Intracomm, config: Config) -> None:
    """Raise the same ConfigError on all ranks unless their settings are equal."""
    mine: dict[str, object] = {
        **config.agreed(),
        "version of mpimcast": __version__,
        "byte order": sys.byteorder,
    }
    digest = hashlib.sha256(json.dumps(mine).encode()).digest()
    digests = bytearray(len(digest) * private.Get_size())
    request = private.Iallgather(digest, digests)
    complete(request, config.timeout, "agreeing on settings")
    if digests == digest * private.Get_size():
        return
    raise ConfigError(_difference(exchange(private, mine, config.timeout)))


def _difference(settings: Sequence[dict[str, object]]) -> str:
    """Name the settings that differ, with values and ranks."""
    parts = []
    for name in sorted({name for each in settings for name in each}):
        ranks: dict[object, list[int]] = {}
        for rank, each in enumerate(settings):
            ranks.setdefault(each.get(name), []).append(rank)
        if len(ranks) > 1:
            values = ", ".join(f"{v!r} on {_named(r)}" for v, r in ranks.items())
            parts.append(f"{name} is {values}")
    return f"the ranks disagree: {'; '.join(parts)}. Give all ranks the same"


def _named(ranks: list[int]) -> str:
    """Name some ranks, not all of thousands."""
    many = 8
    shown = ", ".join(map(str, ranks[:many]))
    more = f" and {len(ranks) - many} more" if len(ranks) > many else ""
    return f"rank{'s' if len(ranks) > 1 else ''} {shown}{more}"


# ---- opening -----------------------------------------------------------------


class Opened(NamedTuple):
    """What a communicator has after opening."""

    stream: _ffi.Stream
    team: teams.Team  # to be given back after the stream is closed
    path: str  # for people


class _Path(NamedTuple):
    """What all ranks chose to open, knowing the same."""

    same_host: bool
    chunk_bytes: int
    group: int
    port: int
    name: str
    channel: int


def open_udp(private: MPI.Intracomm, config: Config) -> Opened:
    """Open a stream over UDP multicast, on all ranks or on none.

    Communicators of the same processes share a team. Raises the same
    TransportError on all ranks.
    """
    with contextlib.ExitStack() as undo:
        known = teams.find(private, config)
        if known is not None:
            undo.callback(teams.release, known)
        _, facts = together(private, config, lambda: _introduction(config, known))
        path = _choose(facts, config)
        if known is not None and all(fact["team"] == known.name for fact in facts):
            team = known
        else:
            undo.close()
            team = _open_team(private, config, path, undo)
        stream, _ = together(
            private, config, lambda: _create_stream(team, config, path, undo)
        )
        undo.pop_all()
    where = "on one host" if path.same_host else "over the network"
    chunk_bytes = team.endpoint.chunk_bytes
    return Opened(stream, team, f"UDP multicast {where}, chunks of {chunk_bytes} bytes")


def _open_team(
    private: MPI.Intracomm, config: Config, path: _Path, undo: contextlib.ExitStack
) -> teams.Team:
    """Open a team whose multicast reaches all ranks, with smaller chunks if need be."""
    smaller = [] if config.chunk_bytes else [n for n in _CHUNKS if n < path.chunk_bytes]
    for chunk_bytes in [path.chunk_bytes, *smaller]:
        team, addresses = together(
            private,
            config,
            lambda: _create_team(private, config, path, chunk_bytes, undo),  # noqa: B023 -- called at once
        )
        together(private, config, lambda: _connect(team, addresses))  # noqa: B023 -- likewise
        failure, narrow = _probe(private, config, team)
        if not failure:
            return team
        undo.close()
        if not narrow:
            break
    raise TransportError(failure)


def _probe(
    private: MPI.Intracomm, config: Config, team: teams.Team
) -> tuple[str, bool]:
    """Find out, on all ranks alike, whether every rank hears every other.

    Returns
    -------
    failure : str
        What does not come through; empty if all does.
    narrow : bool
        Whether shorter datagrams do.
    """
    for slice_s in _PROBES_S:
        probe = team.endpoint.probe(slice_s)
        probes = exchange(private, probe, config.timeout)
        deaf = [rank for rank, (_, full, _) in enumerate(probes) if full]
        if not deaf:
            return "", False
    narrow = not any(unheard for unheard, _, _ in probes)
    length = f"in chunks of {team.endpoint.chunk_bytes} bytes " if narrow else ""
    failure = (
        f"what rank {probes[deaf[0]][2]} multicasts {length}does not reach rank "
        f"{deaf[0]}; see whether the network passes multicast and the MTU is right"
    )
    return failure, narrow


def together(
    private: MPI.Intracomm, config: Config, act: Callable[[], tuple[_T, object]]
) -> tuple[_T, list[Any]]:
    """Let every rank `act`, and tell all what came of it.

    `act` returns something to keep and something, fit for JSON, to tell. Where it
    raises an Error on one rank, all ranks raise the same TransportError.
    """
    kept, fact = None, None
    failure = ""
    try:
        kept, fact = act()
    except Error as error:
        failure = f"{error} (on host {socket.gethostname()})"
    facts = exchange(private, [failure, fact], config.timeout)
    for rank, (failure, _) in enumerate(facts):
        if failure:
            raise TransportError(f"rank {rank}: {failure}", ranks=(rank,))
    return cast("_T", kept), [fact for _, fact in facts]


def _introduction(
    config: Config, team: teams.Team | None
) -> tuple[None, dict[str, object]]:
    """Tell what decides about the path; of what is drawn, rank 0's will count."""
    try:
        from mpimcast import _ffi
    except ImportError as error:
        raise TransportError(
            f"mpimcast's C library cannot be loaded: {error}"
        ) from error
    return None, {
        "wire": _ffi.wire_version(),
        "host": _host_key(),
        "interfaces": {
            place: _able(config, same_host=place == "host") for place in _PLACES
        },
        "team": team.name if team else "",
        "name": secrets.token_hex(8),
        "channel": secrets.token_hex(8),
        "group": _GROUP_FIRST + secrets.randbelow(_GROUPS),
        "port": _PORT_FIRST + secrets.randbelow(_PORTS),
    }


def _able(config: Config, *, same_host: bool) -> tuple[int, str]:
    """Return how much a datagram carries, or why none does."""
    from mpimcast import _ffi

    try:
        found = _ffi.find_interface(config, same_host=same_host)
    except TransportError as error:
        return 0, str(error)
    return found.chunk_bytes_max, ""


def _host_key() -> str:
    """Return what is equal in processes that reach each other's loopback."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")
    network = Path("/proc/self/ns/net").stat().st_ino
    return hashlib.sha256(f"{boot.strip()} {network}".encode()).hexdigest()[:16]


def _choose(facts: Sequence[dict[str, Any]], config: Config) -> _Path:
    """Choose what to open, or raise on all ranks what stands against it."""
    first = facts[0]
    same_host = all(fact["host"] == first["host"] for fact in facts)
    chunk_bytes = config.chunk_bytes
    for rank, fact in enumerate(facts):
        able_bytes, failure = fact["interfaces"][_PLACES[0 if same_host else 1]]
        if fact["wire"] != first["wire"]:
            failure = f"speaks wire version {fact['wire']}, rank 0 {first['wire']}"
        elif not failure and able_bytes < config.chunk_bytes:
            failure = f"CHUNK_BYTES={config.chunk_bytes} is more than {able_bytes}, "
            failure += "the most that its interface carries in a datagram"
        if failure:
            raise TransportError(f"rank {rank}: {failure}", ranks=(rank,))
        chunk_bytes = min(chunk_bytes or able_bytes, able_bytes)
    return _Path(
        same_host=same_host,
        chunk_bytes=chunk_bytes,
        group=first["group"],
        port=first["port"],
        name=first["name"],
        channel=int(first["channel"], 16),
    )


def _create_team(
    private: MPI.Intracomm,
    config: Config,
    path: _Path,
    chunk_bytes: int,
    undo: contextlib.ExitStack,
) -> tuple[teams.Team, str]:
    """Open this rank's sockets; tell their address."""
    from mpimcast import _ffi

    endpoint = _ffi.Endpoint(
        config,
        _ffi.find_interface(config, same_host=path.same_host),
        rank=private.Get_rank(),
        nranks=private.Get_size(),
        group=path.group,
        port=path.port,
        channel=int(path.name, 16),
        chunk_bytes=chunk_bytes,
    )
    team = teams.add(private, config, endpoint, path.name)
    undo.callback(teams.release, team)
    return team, endpoint.address().hex()


def _connect(team: teams.Team, addresses: Sequence[str]) -> tuple[None, None]:
    """Connect a new team; all have joined the groups when all know that."""
    team.endpoint.connect(bytes.fromhex("".join(addresses)))
    return None, None


def _create_stream(
    team: teams.Team, config: Config, path: _Path, undo: contextlib.ExitStack
) -> tuple[_ffi.Stream, None]:
    """Make a stream on a connected team."""
    from mpimcast import _ffi

    stream = _ffi.Stream(team.endpoint, config, path.channel)
    undo.callback(stream.close)
    return stream, None
