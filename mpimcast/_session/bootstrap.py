# SPDX-License-Identifier: BSD-3-Clause
"""Opens a stream over the best transport, on all ranks or on none."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, NamedTuple

from mpimcast._mpi.agreement import together
from mpimcast._native import runner
from mpimcast._native.layout import Place
from mpimcast._native.transport import wanted
from mpimcast._session import multicast, nodes, teams
from mpimcast._session.cutting import cut_bytes
from mpimcast._session.introduction import introduced
from mpimcast._support.naming import listed
from mpimcast.errors import ConfigError, TransportError

if TYPE_CHECKING:
    from mpimcast._native.calls import AnyStream
    from mpimcast._native.transport import Transport
    from mpimcast._session.introduction import Introduction
    from mpimcast._session.nodes import Nodes
    from mpimcast._session.regions import Region
    from mpimcast._session.sharing import Shared


# What precedes, in the path of a team, why ranks cannot read each other's memory.
_CROSS_REFUSED = "; the kernel lets no rank read the other's own memory: "


class LeftToMpi(TransportError):
    """The ranks have chosen to leave the data to the MPI library."""


class Opened(NamedTuple):
    """A communicator's stream and team, just opened.

    Attributes
    ----------
    stream : Stream or NodeStream
        The stream.
    team : Team
        Its team.
    refused : str
        Why a better transport was not taken; empty if none is better.
    region : Region or None
        On the first rank of a node, the stream's memory.
    cut_bytes : int
        The size of a result above which it is cut into pieces; 0 if none is.
    """

    stream: AnyStream
    team: teams.Team
    refused: str
    region: Region | None
    cut_bytes: int = 0

    def close(self, *, clean: bool) -> None:
        """Close the stream, and release its team.

        Its memory serves another stream only if this is a `clean` end, after which no
        rank uses it any more.
        """
        self.stream.close()
        if clean and self.team.shared is not None:
            self.team.shared.give_back(self.region)
        teams.release(self.team)


def open_stream(introduction: Introduction) -> Opened:
    """Open a stream over the best transport, on all ranks or on none. Collective.

    Communicators of the same processes share a team. Raises the same TransportError
    on all ranks, which is LeftToMpi if they chose to open none.
    """
    known = introduction.known
    if known is not None and known.shared is not None and introduction.agreed is None:
        return _open_without_memory(introduction)
    with contextlib.ExitStack() as undo:
        if known is not None:
            teams.acquire(known)
            team, refused = known, ""
        else:
            team, refused = _Choice(introduction).open_team()
        undo.callback(teams.release, team)
        making = _Making(introduction, team)
        undo.callback(making.undo)
        stream = making.make()
        undo.pop_all()
    return Opened(stream, team, refused, making.region, cut_bytes(introduction.facts))


def _open_without_memory(introduction: Introduction) -> Opened:
    """Open a stream whose ranks share no memory, since none is left. Collective."""
    config = introduction.config
    others = set(config.transports) - {"shm", "mpi"}
    why = (
        "other communicators have taken the memory that ranks of a node share: raise "
        f"NODE_BYTES={config.node_bytes}"
    )
    if introduction.same_host and (config.transport == "auto" or not others):
        raise LeftToMpi(why)
    with introduced(introduction.private, config, shares=False) as again:
        return open_stream(again)._replace(refused=why)


class _Choice:
    """The choice of a transport: the first that all ranks can open."""

    def __init__(self, introduction: Introduction) -> None:
        self._introduction = introduction
        self._config = introduction.config
        self._failures: list[str] = []
        self._nodes: Nodes | None = None

    def open_team(self) -> tuple[teams.Team, str]:
        """Open a team over the first transport that works. Collective.

        Return the team, and in words why better transports do not work.
        """
        config, introduction = self._config, self._introduction
        alone = config.transport == "auto" and introduction.same_host
        with contextlib.ExitStack() as undo:
            undo.callback(self._close_nodes)
            kinds = {kind.name: kind for kind in wanted(config)}
            last: TransportError | None = None
            for name in config.transports:
                if name == "mpi" or (alone and name != "shm"):
                    break
                try:
                    team = self._open_over(kinds.get(name))
                except TransportError as error:
                    last = error
                    if name != "shm" or config.transport != "auto" or alone:
                        self._failures.append(f"{name}: {error}")
                else:
                    undo.pop_all()
                    if team.shared is None:
                        self._close_nodes()
                    return team, "; ".join(self._failures)
        if alone:
            raise LeftToMpi(
                "all ranks share one host, but not memory "
                f"({last}); TRANSPORT=udp multicasts there too"
            )
        if len(self._failures) == 1 and last is not None:
            raise last
        raise TransportError("; ".join(self._failures))

    def _open_over(self, kind: type[Transport] | None) -> teams.Team:
        """Open a team over a kind of transport, or by shared memory if it is None."""
        if kind is None:
            return self._open_memory()
        if self._config.progress_thread == "off" and kind.needs_thread:
            why = "PROGRESS_THREAD=off works over shm and verbs only"
            raise ConfigError("; ".join([why, *self._failures]))
        shared = None
        introduction = self._introduction
        if introduction.has_company and not introduction.same_host:
            shared = self._need_nodes()
        return multicast.open_team(introduction, kind, shared)

    def _open_memory(self) -> teams.Team:
        introduction = self._introduction
        if not introduction.same_host:
            raise TransportError("the ranks are on several hosts")
        if self._config.node_bytes == 0:
            raise TransportError("NODE_BYTES=0")
        if not introduction.shares:
            raise TransportError("other communicators have taken the memory")
        shared = self._need_nodes()
        if shared is None or shared.layout.nnodes > 1:
            why = self._nodes.refused if self._nodes is not None else ""
            raise TransportError(
                why or f"NODE_BYTES={self._config.node_bytes} is too little"
            )
        path = f"shared memory of {shared.layout}"
        if self._config.protect in ("authenticate", "encrypt"):
            path += f"; PROTECT={self._config.protect} concerns datagrams, and has none"
        means = teams.Means(introduction.facts[0]["name"], "shm", path, None, shared)
        return teams.add(introduction.private, self._config, means)

    def _need_nodes(self) -> Shared | None:
        """Open the nodes, unless that was tried before. Collective.

        Return None if no ranks share memory, or too little of it.
        """
        introduction = self._introduction
        if not introduction.shares:
            return None
        if self._nodes is None:
            self._nodes = nodes.open_nodes(
                introduction, lambda: multicast.device_folder(introduction)
            )
            shared = self._nodes.shared
            if shared is not None:
                agreed = shared.agree(self._nodes.proposals)
                introduction.renew(agreed, self._nodes.proposal)
        if introduction.agreed is None:
            self._close_nodes()
            return None
        return self._nodes.shared

    def _close_nodes(self) -> None:
        if self._nodes is not None and self._nodes.shared is not None:
            self._nodes.shared.close()
            self._nodes = self._nodes._replace(shared=None)


class _Making:
    """The making of a stream on an open team."""

    def __init__(self, introduction: Introduction, team: teams.Team) -> None:
        self.region: Region | None = None
        self._introduction = introduction
        self._team = team
        self._stream: AnyStream | None = None
        self._runner = None if team.endpoint is None else team.endpoint.runner()

    def make(self) -> AnyStream:
        """Create the stream, on all ranks or on none. Collective."""
        introduction, team = self._introduction, self._team
        _, told = together(introduction.private, introduction.config, self._create)
        rails, refusals, labels = map(list, zip(*told, strict=True))
        team.runner = runner.in_words(self._runner, labels)
        team.has_firmware = "firmware" in labels
        if team.shared is not None and not team.path:
            team.path = team.shared.path(rails)
        assert self._stream is not None  # noqa: S101 -- no rank has failed
        self._prepare(self._stream, refusals)
        return self._stream

    def _prepare(self, stream: AnyStream, refusals: list[str]) -> None:
        """Map a node's memory; let two ranks read each other's unless one cannot."""
        from mpimcast._native.node import NodeStream

        if not isinstance(stream, NodeStream):
            return
        stream.populate()
        refused = {rank: why for rank, why in enumerate(refusals) if why}
        if not refused:
            stream.begin_cross_reads()
        elif _CROSS_REFUSED not in self._team.path:
            self._team.path += f"{_CROSS_REFUSED}{listed(refused)}"

    def _create(self) -> tuple[None, list[str]]:
        from mpimcast._native.node import NodeStream
        from mpimcast._native.stream import Stream

        introduction, team = self._introduction, self._team
        config, shared = introduction.config, team.shared
        channel = int(introduction.facts[0]["channel"], 16)
        label = "" if self._runner is None else self._runner.label
        between = None
        if team.endpoint is not None:
            ranks = (0,) if shared is None else shared.layout.rail(shared.rank)
            own = int(introduction.facts[ranks[0]]["channel"], 16)
            between = Stream(team.endpoint, config, own)
            self._stream = between
        agreed = introduction.agreed
        if shared is not None and agreed is not None:
            self.region = shared.accept(introduction.take_proposal(), agreed)
            place = Place(shared.layout, shared.rank, *agreed, shared.crowded)
            self._stream = NodeStream(shared.node, config, channel, place, between)
            if shared.layout.reads_across:
                return None, [team.rail, shared.node.why_unreadable(), label]
        return None, [team.rail, "", label]

    def undo(self) -> None:
        """Close what was made."""
        if self._stream is not None:
            self._stream.close()
        if self._team.shared is not None:
            self._team.shared.give_back(self.region)
