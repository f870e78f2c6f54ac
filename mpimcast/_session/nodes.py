# SPDX-License-Identifier: BSD-3-Clause
"""Finds out which ranks can share memory, and opens the segment of each node."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from mpimcast._mpi.agreement import act_on_all, exchange
from mpimcast._native import segment
from mpimcast._native.layout import Layout
from mpimcast._session import passing
from mpimcast._session.introduction import is_crowded, secret_of
from mpimcast._session.sharing import Keeper, Shared
from mpimcast.errors import TransportError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mpimcast._native.node import Node
    from mpimcast._session.introduction import Introduction
    from mpimcast._session.sharing import Proposal

# The share of TIMEOUT for which a rank waits for the segment's descriptor. The others
# wait for that rank meanwhile.
_FETCH_SHARE = 0.5


class Nodes(NamedTuple):
    """The nodes that all ranks have found together.

    Attributes
    ----------
    shared : Shared or None
        This rank's part in its node; None if no rank shares memory with another.
    proposal : Proposal or None
        What this rank has for a first stream, if it is the first of its node.
    proposals : list
        What all ranks have told of their proposals, by rank.
    refused : str
        Why some ranks of one host share no memory; empty if all do.
    """

    shared: Shared | None
    proposal: Proposal | None
    proposals: list[Any]
    refused: str


def open_nodes(introduction: Introduction, device: Callable[[], str]) -> Nodes:
    """Open the segment of each node, on all ranks. Collective.

    A rank to which its host's first rank cannot pass the segment is a node of its own.

    Parameters
    ----------
    introduction
        What the ranks have told each other.
    device
        Returns the folder in /sys of the device by which this rank would lead its node.
    """
    lone: dict[int, str] = {}
    turn = 0
    while True:
        attempt = _Attempt(introduction, frozenset(lone), turn)
        failed, facts = attempt.run(device)
        if not failed:
            break
        attempt.close()
        lone |= failed
        turn += 1
    refused = "; ".join(f"rank {rank}: {why}" for rank, why in sorted(lone.items()))
    nears, proposals = zip(*(fact or (False, None) for fact in facts), strict=True)
    return Nodes(attempt.shared(nears), attempt.proposal, list(proposals), refused)


class _Attempt:
    """One attempt to open all nodes, with the ranks that have not failed before.

    Parameters
    ----------
    introduction
        What the ranks have told each other.
    lone
        The ranks that are nodes of their own.
    turn
        The number of attempts before this one.

    Attributes
    ----------
    proposal : Proposal or None
        What this rank has for a first stream, if it is the first of its node.
    """

    def __init__(
        self, introduction: Introduction, lone: frozenset[int], turn: int
    ) -> None:
        facts = introduction.facts
        self.proposal: Proposal | None = None
        self._introduction = introduction
        self._rank = introduction.private.Get_rank()
        self._turn = turn
        self._layout = layout_of([fact["host"] for fact in facts], lone)
        self._members = self._layout.members(self._rank)
        self._secret = secret_of(facts[self._members[0]])
        self._node: Node | None = None
        self._keeper: Keeper | None = None
        self._expected: dict[bytes, bytes] = {}
        if self._rank == self._members[0]:
            self._expected = dict(
                passing.proofs(self._secret, guest, turn) for guest in self._members[1:]
            )

    def run(self, device: Callable[[], str]) -> tuple[dict[int, str], list[Any]]:
        """Open the nodes; return who must be a node of its own, and all ranks' facts.

        A fact is whether a rank is near its device, and what it told of its proposal.
        """
        introduction = self._introduction

        def tell(told: tuple[str, object]) -> list[Any]:
            limit_s = introduction.config.timeout
            return exchange(introduction.private, told, limit_s, meanwhile=self._serve)

        outcome = act_on_all(lambda: (None, self._act(device)), tell)
        return self._blamed(outcome.failures), outcome.facts

    def _act(self, device: Callable[[], str]) -> tuple[bool, list[int] | None] | None:
        if self._layout.nnodes == len(self._layout.nodes):
            return None
        if self._rank == self._members[0]:
            self._create()
        else:
            self._fetch()
        several = self._layout.nnodes > 1
        told = None if self.proposal is None else self.proposal.told()
        return several and is_near(device()), told

    def _create(self) -> None:
        """Create the segment of this node."""
        from mpimcast._native.node import Node

        nmembers = len(self._members)
        if nmembers > 1 and self._introduction.door is None:
            raise TransportError("cannot meet the other ranks of this host")
        config = self._introduction.config
        nbytes = config.node_bytes
        fd = segment.create(nbytes)
        self._node = Node(fd, nbytes, 0, nmembers)
        self._keeper = Keeper(fd, nbytes, config.rails)
        self.proposal = self._keeper.propose(self._layout, self._rank)
        self._serve()

    def _fetch(self) -> None:
        """Fetch the segment from the first rank of this node."""
        from mpimcast._native.node import Node

        config = self._introduction.config
        shown = passing.proofs(self._secret, self._rank, self._turn)
        fd = passing.fetch(self._secret, shown, _FETCH_SHARE * config.timeout)
        number = self._members.index(self._rank)
        self._node = Node(fd, config.node_bytes, number, len(self._members))

    def _serve(self) -> None:
        """Pass the segment to ranks of this host that have come for it."""
        door = self._introduction.door
        if door is not None and self._node is not None and self._expected:
            door.serve(self._node.fd, self._expected)

    def _blamed(self, failures: Mapping[int, str]) -> dict[int, str]:
        """Return which ranks must be nodes of their own, and why.

        If the first rank of a node fails, no other rank of it can succeed. If a rank
        fails that is a node of its own already, no rank shares memory.
        """
        layout = self._layout
        firsts = layout.firsts()
        blamed = {}
        for rank, node in enumerate(layout.nodes):
            why = failures.get(firsts[node]) or failures.get(rank)
            if why:
                blamed[rank] = why
        for rank, why in blamed.items():
            if len(layout.members(rank)) == 1:
                return dict.fromkeys(range(len(layout.nodes)), why)
        return blamed

    def shared(self, nears: Sequence[bool]) -> Shared | None:
        """Return this rank's part in its node, led by a rank near the network."""
        if self._node is None:
            return None
        crowded = is_crowded(self._introduction.facts)
        layout = led(self._layout, [nears])
        return Shared(layout, self._rank, self._node, self._keeper, crowded)

    def close(self) -> None:
        """Close what this rank has opened."""
        if self._node is not None:
            self._node.close()
        if self._keeper is not None:
            self._keeper.close()


def layout_of(hosts: Sequence[str], lone: frozenset[int]) -> Layout:
    """Return the nodes of ranks on these hosts, of which some ranks share with none.

    Each node is led by its first rank.
    """
    numbers: dict[object, int] = {}
    firsts: list[int] = []
    nodes = []
    for rank, host in enumerate(hosts):
        key: object = rank if rank in lone else host
        if key not in numbers:
            numbers[key] = len(firsts)
            firsts.append(rank)
        nodes.append(numbers[key])
    return Layout(tuple(nodes), (tuple(firsts),))


def led(layout: Layout, nears: Sequence[Sequence[bool]]) -> Layout:
    """Return a layout with a leader of each node for each rail.

    No node has fewer ranks than there are rails.

    Parameters
    ----------
    nears
        For each rail, whether each rank is near its device. A node is led by its first
        rank that is, or else by its first, of those that lead on no earlier rail.
    """
    rails: list[tuple[int, ...]] = []
    for near in nears:
        leaders = []
        for first in layout.firsts():
            free = [
                rank
                for rank in layout.members(first)
                if not any(rank in rail for rail in rails)
            ]
            leaders.append(next((rank for rank in free if near[rank]), free[0]))
        rails.append(tuple(leaders))
    return layout._replace(rails=tuple(rails))


def is_near(device: str) -> bool:
    """Return whether this process runs only on processors near a device.

    Parameters
    ----------
    device
        The device's folder in /sys; empty for none.
    """
    with contextlib.suppress(OSError, ValueError):
        text = Path(device, "local_cpulist").read_text(encoding="ascii")
        return os.sched_getaffinity(0) <= processors(text)
    return False


def processors(text: str) -> set[int]:
    """Return the processors of a list as the kernel writes it, such as 0-3,8."""
    found: set[int] = set()
    for part in text.strip().split(","):
        first, _, last = part.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return found
