# SPDX-License-Identifier: BSD-3-Clause
"""Finds the nodes to blame for losses between pairs of nodes."""

from __future__ import annotations

from collections import defaultdict
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple

from mpimcast.cli.doctor.cover import smallest_cover

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Loss = dict[tuple[str, str], float]

# Fractions of what is sent: working networks lose less than the first, dead ones at
# least the second.
LOSS_MAX = 0.05
LOSS_SILENT = 0.99


class Fault(NamedTuple):
    """A node to blame, and the losses on the way to it and from it.

    Attributes
    ----------
    node : str
        The node's name.
    incoming : dict
        The fraction of a sender's datagrams that does not arrive at this node, by
        sender. Senders that do not lose too much are not in it.
    outgoing : dict
        The fraction of this node's datagrams that does not arrive at a receiver, by
        receiver. Receivers that do not lose too much are not in it.
    others : tuple of str
        The nodes that are not to blame.
    """

    node: str
    incoming: dict[str, float]
    outgoing: dict[str, float]
    others: tuple[str, ...]

    @property
    def silent(self) -> bool:
        """Whether nothing arrives between it and some node, in either direction."""
        return any(
            part >= LOSS_SILENT
            for way in (self.incoming, self.outgoing)
            for part in way.values()
        )

    def words(self, kind: str) -> str:
        """Return in words what is wrong with datagrams of a `kind`, as in "unicast"."""
        parts = []
        if self.incoming:
            share = fmean(self.incoming.values())
            whose = f"the {kind} from {self._named(self.incoming)}"
            if set(self.incoming) == {self.node}:
                whose = f"its own {kind}"
            parts.append(f"it {_does_not_receive(share, one=True)} {whose}")
        if self.outgoing:
            share = fmean(self.outgoing.values())
            one = len(self.outgoing) == 1
            who = self._named(self.outgoing)
            parts.append(f"{who} {_does_not_receive(share, one=one)} its {kind}")
        if len(self.others) == 1 and self.node not in self.incoming:
            parts.append(
                f"or {self.others[0]} is to blame: two nodes do not show which"
            )
        return "; ".join(parts)

    def _named(self, nodes: Mapping[str, float]) -> str:
        """Name some nodes; call all that are not to blame "others"."""
        if len(self.others) > 1 and set(nodes) >= set(self.others):
            return "others"
        many = 8
        names = ["itself" if name == self.node else name for name in nodes]
        more = f" and {len(names) - many} more" if len(names) > many else ""
        return ", ".join(names[:many]) + more


def _does_not_receive(share: float, *, one: bool) -> str:
    """Return the verb of one node, or several, at which a share does not arrive."""
    if share >= LOSS_SILENT:
        return "receives none of" if one else "receive none of"
    return f"{'loses' if one else 'lose'} {100 * share:.0f} % of"


def by_node(lost: Mapping[tuple[int, int], float], nodes: Sequence[str]) -> Loss:
    """Return, for each pair of nodes, the mean over the pairs of their ranks.

    Parameters
    ----------
    lost
        The fraction of what the first rank sent that did not arrive at the second.
    nodes
        The node of each rank.
    """
    parts = defaultdict(list)
    for (source, target), part in lost.items():
        parts[nodes[source], nodes[target]].append(part)
    return {pair: fmean(values) for pair, values in parts.items()}


def find_faults(loss: Mapping[tuple[str, str], float]) -> list[Fault]:
    """Return few nodes such that every pair which loses too much has one of them."""
    bad = {pair: part for pair, part in loss.items() if part > LOSS_MAX}
    guilty = smallest_cover(bad)
    nodes = dict.fromkeys(name for pair in loss for name in pair)
    others = tuple(name for name in nodes if name not in guilty)
    faults = []
    for node in (name for name in nodes if name in guilty):
        incoming = {one: part for (one, other), part in bad.items() if other == node}
        outgoing = {other: part for (one, other), part in bad.items() if one == node}
        outgoing.pop(node, None)  # its own multicast to itself counts as incoming
        faults.append(Fault(node, incoming, outgoing, others))
    return faults
