# SPDX-License-Identifier: BSD-3-Clause
"""Opens a team whose ranks multicast, on all ranks or on none."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from mpimcast._mpi.agreement import exchange, together
from mpimcast._native.transport import wanted
from mpimcast._session import teams
from mpimcast._session.introduction import draft_of, is_crowded
from mpimcast._session.opening import Opening
from mpimcast.errors import TransportError

if TYPE_CHECKING:
    from collections.abc import Callable

    from mpimcast._native.draft import Draft
    from mpimcast._native.endpoint import Endpoint
    from mpimcast._native.transport import Transport
    from mpimcast._session.introduction import Introduction
    from mpimcast._session.sharing import Shared

# How long each round of probing listens: most networks need only the first, but a
# switch that has just learnt of a group may take longer.
PROBES_S = (0.005, 0.02, 0.08, 0.3)


def device_folder(introduction: Introduction) -> str:
    """Return the folder in /sys of the device by which this rank would multicast."""
    draft = draft_of(introduction.facts, introduction.private.Get_rank())
    folders = (
        kind(introduction.config, draft).folder()
        for kind in wanted(introduction.config)
    )
    return next(filter(None, folders), "")


def open_team(
    introduction: Introduction, kind: type[Transport], shared: Shared | None
) -> teams.Team:
    """Open a team over one kind of transport, on all ranks or on none. Collective.

    Its ranks are the node leaders if ranks share memory, else all ranks.
    """
    return _TeamOpening(introduction, kind, shared).run()


class _TeamOpening:
    """Opens a team whose multicast reaches all its ranks."""

    def __init__(
        self, introduction: Introduction, kind: type[Transport], shared: Shared | None
    ) -> None:
        self._private = introduction.private
        self._config = introduction.config
        self._shared = shared
        rank, size = self._private.Get_rank(), self._private.Get_size()
        self._ranks = tuple(range(size)) if shared is None else shared.layout.leaders
        self._takes_part = rank in self._ranks
        place = self._ranks.index(rank) if self._takes_part else 0
        self._transport = kind(self._config, self._draft(introduction, place))

    def _draft(self, introduction: Introduction, place: int) -> Draft:
        facts = introduction.facts
        draft = draft_of([facts[rank] for rank in self._ranks], place)
        if self._shared is None:
            return draft
        return draft._replace(
            nlocal=len(self._shared.layout.members(self._ranks[place])),
            crowded=is_crowded(facts),
            leaders=self._ranks,
        )

    def run(self) -> teams.Team:
        """Open the team, with smaller chunks if need be."""
        transport = self._transport
        mine = self._takes_part
        opening = Opening(
            transport if mine else None,
            [self._ranks],
            self._ranks if mine else (),
            self._step,
        )
        most = transport.choose(opening.find())
        smaller = (
            []
            if self._config.chunk_bytes
            else [n for n in transport.smaller_chunk_bytes if n < most]
        )
        for chunk_bytes in [most, *smaller]:
            with contextlib.ExitStack() as attempt:
                attempt.callback(opening.close)
                opening.create(chunk_bytes)
                opening.connect()
                failure, narrow = self._probe(opening.endpoint, chunk_bytes)
                if not failure:
                    attempt.pop_all()
                    endpoint = opening.hand_over() if mine else None
                    return self._made(endpoint, chunk_bytes)
            if not narrow:
                break
        raise TransportError(failure)

    def _step(self, act: Callable[[], object]) -> list[Any]:
        """Run `act` on the ranks of the team; return all ranks' results."""
        _, results = together(
            self._private,
            self._config,
            lambda: (None, act() if self._takes_part else None),
        )
        return results

    def _probe(self, endpoint: Endpoint | None, chunk_bytes: int) -> tuple[str, bool]:
        """Find out, on all ranks alike, whether every rank hears every other.

        Returns
        -------
        failure : str
            What does not arrive; empty if everything does.
        narrow : bool
            Whether short datagrams arrive everywhere.
        """
        for slice_s in PROBES_S:
            probe = (0, 0, None) if endpoint is None else endpoint.probe(slice_s)
            probes = exchange(self._private, probe, self._config.timeout)
            deaf = [rank for rank, (_, full, _) in enumerate(probes) if full]
            if not deaf:
                return "", False
        narrow = not any(unheard for unheard, _, _ in probes)
        length = f"in chunks of {chunk_bytes} bytes " if narrow else ""
        failure = (
            f"multicast from rank {self._ranks[probes[deaf[0]][2]]} {length}does not "
            f"reach rank {deaf[0]}; check that the network passes multicast and the "
            "MTU is right"
        )
        return failure, narrow

    def _made(self, endpoint: Endpoint | None, chunk_bytes: int) -> teams.Team:
        path = ""
        if endpoint is not None:
            path = f"{self._transport.describe()}, chunks of {chunk_bytes} bytes"
            if self._shared is not None:
                path += f", between {self._shared.layout}"
        means = teams.Means(
            self._transport.draft.name,
            self._transport.name,
            path,
            endpoint,
            self._shared,
        )
        return teams.add(self._private, self._config, means)
