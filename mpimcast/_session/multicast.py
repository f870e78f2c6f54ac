# SPDX-License-Identifier: BSD-3-Clause
"""Opens a team whose ranks multicast, on all ranks or on none."""

from __future__ import annotations

import contextlib
import dataclasses
from typing import TYPE_CHECKING, Any

from mpimcast._mpi.agreement import exchange, together
from mpimcast._native.transport import wanted
from mpimcast._session import protecting, rails, teams
from mpimcast._session.introduction import draft_of, is_crowded, processors_of
from mpimcast._session.opening import Opening
from mpimcast._session.protecting import secret
from mpimcast.errors import ConfigError, TransportError

if TYPE_CHECKING:
    from collections.abc import Callable

    from mpimcast._native.draft import Draft
    from mpimcast._native.endpoint import Endpoint
    from mpimcast._native.protection import Protection
    from mpimcast._native.transport import Transport
    from mpimcast._session.introduction import Introduction
    from mpimcast._session.sharing import Shared
    from mpimcast._settings.config import Config

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

    The node leaders have an endpoint, or all ranks if none of them share memory.
    """
    config, facts = introduction.config, introduction.facts
    protection = protecting.choose(
        config,
        kind,
        [fact["unprotected"] for fact in facts],
        warns=introduction.private.Get_rank() == 0,
    )
    _check_thread(config, kind, protection)
    parts, names = [tuple(range(len(facts)))], [config.net_devices]
    if shared is not None:
        shared, names = rails.choose(introduction, kind, shared)
        parts = list(shared.layout.rails)
    endpoint, words = None, ""
    with contextlib.ExitStack() as undo:
        for number, (ranks, name) in enumerate(zip(parts, names, strict=True), 1):
            own = dataclasses.replace(config, net_devices=name)
            draft = _draft(introduction, ranks, shared)._replace(protection=protection)
            opening = _EndpointOpening(introduction, kind(own, draft), ranks)
            try:
                opened = opening.run()
            except TransportError as error:
                if len(parts) == 1:
                    raise
                why = f"rail {number} of {len(parts)}: {error}"
                raise TransportError(why, ranks=error.ranks) from error
            if opened is not None:
                endpoint, words = opened
                undo.callback(endpoint.close)
        undo.pop_all()
    path, rail = (words, "") if shared is None else ("", words)
    if shared is None and config.rails > 1:
        path += f"; RAILS={config.rails} counts only where ranks of a node share memory"
    team = facts[parts[0][0]]["name"]
    means = teams.Means(
        team, kind.name, path, endpoint, shared, rail, introduction.pair
    )
    return teams.add(introduction.private, config, means)


def _check_thread(
    config: Config, kind: type[Transport], protection: Protection | None
) -> None:
    """Raise ConfigError if PROGRESS_THREAD=off would leave NAKs without an answer."""
    if config.progress_thread == "off" and kind.rdma and protection is not None:
        raise ConfigError(
            f"PROGRESS_THREAD=off does not work over {kind.name} with "
            f"PROTECT={config.protect}: what is lost cannot be read from memory"
        )


def _draft(
    introduction: Introduction, ranks: tuple[int, ...], shared: Shared | None
) -> Draft:
    """Return the draft of some ranks' endpoints, as another rank would see it, too."""
    facts, rank = introduction.facts, introduction.private.Get_rank()
    place = ranks.index(rank) if rank in ranks else 0
    draft = draft_of([facts[each] for each in ranks], place)
    draft = draft._replace(pair=introduction.pair)
    if shared is None:
        return draft
    return draft._replace(
        nlocal=len(shared.layout.members(ranks[place])),
        nprocessors=processors_of(facts, ranks[place]),
        crowded=is_crowded(facts),
        leaders=ranks,
    )


class _EndpointOpening:
    """Opens endpoints of some ranks, whose multicast reaches all of these.

    Parameters
    ----------
    introduction
        The facts that all ranks exchanged when the opening began.
    transport
        The transport by which this rank opens its endpoint, if it is one of `ranks`.
    ranks
        The ranks that have endpoints.
    """

    def __init__(
        self, introduction: Introduction, transport: Transport, ranks: tuple[int, ...]
    ) -> None:
        self._private = introduction.private
        self._config = introduction.config
        self._transport = transport
        self._ranks = ranks
        self._takes_part = self._private.Get_rank() in ranks

    def run(self) -> tuple[Endpoint, str] | None:
        """Open the endpoints, with smaller chunks if need be. Collective.

        Return this rank's, and what it uses in words; None if it has none.
        """
        transport = self._transport
        mine = self._takes_part
        opening = Opening(
            transport if mine else None,
            [self._ranks],
            self._ranks if mine else (),
            self._step,
        )
        most = transport.choose(opening.find())
        seal, protection = transport.draft.seal_bytes, transport.draft.protection
        smaller = (
            []
            if self._config.chunk_bytes
            else [n - seal for n in transport.smaller_chunk_bytes if n - seal < most]
        )
        for chunk_bytes in [most, *smaller]:
            with contextlib.ExitStack() as attempt:
                attempt.callback(opening.close)
                opening.create(chunk_bytes)
                with secret(protection, self._private, self._config) as shared:
                    opening.connect(shared)
                failure, narrow = self._probe(opening.endpoint, chunk_bytes)
                if not failure:
                    attempt.pop_all()
                    if not mine:
                        return None
                    words = f"{transport.describe()}, chunks of {chunk_bytes} bytes"
                    return opening.hand_over(), words + self._protected()
            if not narrow:
                break
        raise TransportError(failure)

    def _protected(self) -> str:
        """Return in words how the datagrams are protected, if PROTECT is not off."""
        config, protection = self._config, self._transport.draft.protection
        if config.protect == "off":
            return ""
        if protection is None:
            return f", not protected (PROTECT={config.protect})"
        words = f", {protection.describe()}"
        if self._transport.rdma and config.zero_copy:
            words += "; ZERO_COPY counts only with PROTECT=off"
        return words

    def _step(self, act: Callable[[], object]) -> list[Any]:
        """Run `act` on these ranks; return all ranks' results."""
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
        how = self._transport.draft.cast
        failure = (
            f"{how} from rank {self._ranks[probes[deaf[0]][2]]} {length}does not "
            f"reach rank {deaf[0]}; check that the network passes {how} and the "
            "MTU is right"
        )
        return failure, narrow
