# SPDX-License-Identifier: BSD-3-Clause
"""Trials: disjoint parts of all ranks, each of which tries to open a team.

All ranks take part in every call, including those in no team, so that no call needs a
communicator of only some ranks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mpimcast._mpi.agreement import act_on_all
from mpimcast._session import introduction
from mpimcast._session.opening import Opening
from mpimcast.errors import TransportError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mpimcast._native.endpoint import Endpoint
    from mpimcast._native.transport import Transport
    from mpimcast._session.opening import Part
    from mpimcast._settings.config import Config
    from mpimcast.cli.doctor.world import World


class Trial:
    """Disjoint parts of all ranks, each of which tries to open a team.

    Parameters
    ----------
    world, config
        All ranks, and their settings.
    kind
        The transport.
    parts
        The parts, equal on all ranks.

    Attributes
    ----------
    config : Config
        The settings.
    members : tuple of int
        The ranks of the first part. A team that is to be used has no other part.
    chunk_bytes : int
        The payload of a full datagram of the members.
    failures : dict
        The reason why a rank has failed, by rank. A part with such a rank has no team.
    devices : list of str
        The device that each rank sends from; empty where a rank failed earlier.
    """

    def __init__(
        self,
        world: World,
        config: Config,
        kind: type[Transport],
        parts: Sequence[Part],
    ) -> None:
        self.kind = kind
        self.failures: dict[int, str] = {}
        self.devices = [""] * world.size
        self.members = parts[0]
        self.chunk_bytes = 0
        self._parts = parts
        self._part = next((part for part in parts if world.rank in part), ())
        self._world = world
        self.config = config
        self._open()
        if not self.is_open:
            self.close()

    def _open(self) -> None:
        facts = self._step(lambda: introduction.introduce(self.config))
        transport = None
        if self.is_open:
            place = self._part.index(self._world.rank)
            draft = introduction.draft_of([facts[rank] for rank in self._part], place)
            transport = self.kind(self.config, draft)
        self._opening = Opening(transport, self._parts, self._part, self._step)
        found = self._opening.find()
        chosen = self._step(lambda: self._choose(transport, found))
        devices, lengths = zip(*(each or ("", 0) for each in chosen), strict=True)
        self.devices = list(devices)
        self.chunk_bytes = lengths[self.members[0]]
        self._opening.create(lengths[self._world.rank])
        self._opening.connect()

    def _choose(
        self, transport: Transport | None, found: Sequence[Any]
    ) -> tuple[str, int] | None:
        """Return the device and the bytes of a chunk that this rank's part uses."""
        assert transport is not None  # noqa: S101 -- this rank's part has not failed
        try:
            chunk_bytes = transport.choose(found)
        except TransportError as error:
            mine = self._part.index(self._world.rank)
            if error.ranks and mine not in error.ranks:
                return None  # another rank is at fault, and reports it
            raise
        return transport.device, chunk_bytes

    @property
    def is_open(self) -> bool:
        """Whether this rank's part has a team."""
        return bool(self._part) and not self.failures.keys() & set(self._part)

    @property
    def endpoint(self) -> Endpoint | None:
        """This rank's endpoint, if its part has a team."""
        return self._opening.endpoint if self.is_open else None

    def close(self) -> None:
        """Close the team."""
        self._opening.close()

    def _step(self, act: Callable[[], object]) -> list[Any]:
        """Run `act` on the ranks of parts that have not failed; return all results."""

        def act_if_open() -> tuple[None, object]:
            return None, act() if self.is_open else None

        outcome = act_on_all(act_if_open, self._world.exchange)
        self.failures = outcome.failures | self.failures
        return outcome.facts


def isolate(opens: Callable[[Sequence[Part]], Sequence[bool]], members: Part) -> Part:
    """Find ranks that can open a team, without ranks that keep others from it.

    Parts that do not open are halved until all parts open or are single ranks; each
    step tries all parts at once. Then the largest part that has opened takes in each
    other part that it can open together with.

    Parameters
    ----------
    opens
        Returns which of some disjoint parts open.
    members
        All ranks, which do not open together.

    Returns
    -------
    tuple of int
        Ranks that open together.
    """
    well: list[Part] = []
    parts = _halves([members])
    while parts:
        fine = opens(parts)
        well += [part for part, is_open in zip(parts, fine, strict=True) if is_open]
        parts = _halves(
            p for p, is_open in zip(parts, fine, strict=True) if not is_open
        )
    well.sort(key=len, reverse=True)
    for base in well:
        joined = base
        for part in well:
            both = tuple(sorted((*joined, *part)))
            if part is not base and all(opens([both])):
                joined = both
        # A rank that no other can be in a team with may still open one alone.
        if len(joined) > 1:
            return joined
    return well[0] if well else ()


def _halves(parts: Any) -> list[Part]:
    return [
        half
        for part in parts
        if len(part) > 1
        for half in (part[: len(part) // 2], part[len(part) // 2 :])
    ]
