# SPDX-License-Identifier: BSD-3-Clause
"""What ranks tell each other before they open a stream: who and where they are."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import os
import secrets
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpimcast._device import accelerators
from mpimcast._mpi.agreement import together
from mpimcast._native.draft import Draft
from mpimcast._session import teams
from mpimcast._session.passing import Door
from mpimcast._support.naming import listed, minority
from mpimcast.errors import TransportError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from mpimcast._mpi.private import Private
    from mpimcast._session.sharing import Agreed, Proposal
    from mpimcast._settings.config import Config


class Introduction:
    """What all ranks have told each other, and what this one holds ready for them.

    Attributes
    ----------
    private : Private
        The communicator.
    config : Config
        The settings. Once all ranks have told each other what they can, they are
        without RELIABILITY=code if the firmware of some rank's adapter has no codes.
    shares : bool
        Whether ranks of one node may share memory.
    pair : bool
        Whether two ranks introduce themselves that open a pair.
    facts : list of dict
        What each rank has told, by rank.
    known : teams.Team or None
        The open team of these processes, if every rank has it.
    agreed : Agreed or None
        The memory for the next stream; None if too little is left.
    door : Door or None
        The socket where ranks of this host may meet; None if there can be none.
    """

    def __init__(
        self, private: Private, config: Config, *, shares: bool, pair: bool
    ) -> None:
        self.private = private
        self.config = config
        self.shares = shares and config.node_bytes > 0
        self.pair = pair
        self.facts: list[dict[str, Any]] = []
        self.known: teams.Team | None = None
        self.agreed: Agreed | None = None
        self._proposal: Proposal | None = None
        # To be given back if it is not taken.
        self._team_proposal: Proposal | None = None
        self.door: Door | None = None
        self._team: teams.Team | None = None

    def meet(self) -> None:
        """Tell all ranks this one's fact, and learn theirs. Collective."""
        self._team = teams.find(
            self.private, self.config, shares=self.shares, pair=self.pair
        )
        _, self.facts = together(
            self.private, self.config, lambda: (None, self._fact())
        )
        check_wire(self.facts)
        if any(fact["uncoded"] for fact in self.facts):
            self.config = dataclasses.replace(self.config, reliability="repeat")
        names = {fact["team"] for fact in self.facts}
        if self._team is not None and names == {self._team.name}:
            self.known = self._team
            if self._team.shared is not None:
                proposals = [fact.get("proposal") for fact in self.facts]
                self.agreed = self._team.shared.agree(proposals)
                self._proposal = self._team_proposal

    def _fact(self) -> dict[str, Any]:
        """Return this rank's fact, and hold ready what others may come for."""
        fact = introduce(self.config, "" if self._team is None else self._team.name)
        if self._team is not None and self._team.shared is not None:
            self._team_proposal = self._team.shared.propose()
            if self._team_proposal is not None:
                fact["proposal"] = self._team_proposal.told()
        if self.shares:
            with contextlib.suppress(TransportError):
                self.door = Door(secret_of(fact), self.private.Get_size())
        return fact

    def renew(self, agreed: Agreed | None, proposal: Proposal | None) -> None:
        """Take what newly opened nodes have agreed on, in place of the known team's."""
        self.agreed, self._proposal = agreed, proposal

    def take_proposal(self) -> Proposal | None:
        """Return what this rank has proposed for the next stream, for good."""
        proposal, self._proposal = self._proposal, None
        if proposal is self._team_proposal:
            self._team_proposal = None
        return proposal

    @property
    def same_host(self) -> bool:
        """Whether all ranks are on one host."""
        return len({fact["host"] for fact in self.facts}) == 1

    @property
    def has_company(self) -> bool:
        """Whether some host has several ranks."""
        return len({fact["host"] for fact in self.facts}) < len(self.facts)

    def close(self) -> None:
        """Give up what this rank holds ready, except for a proposal that was taken."""
        if self.door is not None:
            self.door.close()
        if self._team is not None:
            if self._team.shared is not None and self._team_proposal is not None:
                self._team.shared.give_back(self._team_proposal.region)
            teams.release(self._team)


@contextlib.contextmanager
def introduced(
    private: Private, config: Config, *, shares: bool = True, pair: bool = False
) -> Iterator[Introduction]:
    """Introduce all ranks to each other. Collective.

    Parameters
    ----------
    shares
        Whether ranks of one node may share memory, if the settings allow it.
    pair
        Whether the ranks are two that open a pair.
    """
    introduction = Introduction(private, config, shares=shares, pair=pair)
    try:
        introduction.meet()
        yield introduction
    finally:
        introduction.close()


def secret_of(fact: Mapping[str, Any]) -> str:
    """Return what only those ranks know to which a rank has told its fact."""
    return f"{fact['name']} {fact['channel']} {fact['qkey']}"


def introduce(config: Config, team: str = "") -> dict[str, Any]:
    """Return this rank's facts for opening a team; rank 0's random draws count.

    Parameters
    ----------
    team
        The name of this rank's team of the same processes; empty if it has none.
    """
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
        "team": team,
        "name": secrets.token_hex(8),
        "channel": secrets.token_hex(8),
        "group": config.group.draw(config.subgroups),
        "port": config.group_ports.draw(),
        # Only privileged users may use keys in which bit 31 is set.
        "qkey": secrets.randbelow(2**31),
        "devices": bool(accelerators.loaded()),
        "unprotected": _unprotected(config),
        "uncoded": config.may_code and _has_firmware(config),
    }


def _unprotected(config: Config) -> dict[str, str]:
    """Return why each primitive cannot be used, by its name; empty for those that can.

    Return nothing if datagrams are not to be protected.
    """
    if config.protect == "off":
        return {}
    from mpimcast._native import protection

    missing = protection.missing()
    if _has_firmware(config):
        return dict.fromkeys(missing, "the firmware of its adapter protects none")
    return missing


def _has_firmware(config: Config) -> bool:
    """Return whether firmware of an adapter runs operations: it has few abilities."""
    if not config.has_proxy:
        return False
    from mpimcast._native import proxy

    runner = None
    with contextlib.suppress(TransportError):  # which comes again when it is needed
        runner = proxy.find(config.proxy_name)
    return runner is not None and runner.kind == "firmware"


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


def processors_of(facts: Sequence[dict[str, Any]], rank: int) -> int:
    """Return how many processors a rank has for itself.

    Those that it shares with other ranks count in equal parts.
    """
    own = int(facts[rank]["processors"], 16)
    sharing = [
        fact
        for fact in facts
        if fact["machine"] == facts[rank]["machine"]
        and int(fact["processors"], 16) & own
    ]
    return own.bit_count() // len(sharing)


def check_wire(facts: Sequence[dict[str, Any]]) -> None:
    """Raise on all ranks if their versions of the wire format differ."""
    versions = {rank: fact["wire"] for rank, fact in enumerate(facts)}
    if len(set(versions.values())) > 1:
        raise TransportError(
            f"the ranks use different versions of the wire format: {listed(versions)}; "
            "install the same version of mpimcast everywhere",
            ranks=minority(versions),
        )


def draft_of(facts: Sequence[dict[str, Any]], rank: int) -> Draft:
    """Return the draft of a team from its ranks' facts, as seen by rank `rank`."""
    first = facts[0]
    hosts = tuple(fact["host"] for fact in facts)
    return Draft(
        rank=rank,
        hosts=hosts,
        nlocal=hosts.count(hosts[rank]),
        nprocessors=processors_of(facts, rank),
        crowded=is_crowded(facts),
        addresses=tuple(first["addresses"]),
        name=first["name"],
        group=first["group"],
        port=first["port"],
        qkey=first["qkey"],
    )
