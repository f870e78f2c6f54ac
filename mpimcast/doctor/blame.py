# SPDX-License-Identifier: BSD-3-Clause
"""Which nodes are to blame for what is lost between pairs of them."""

from __future__ import annotations

from collections import defaultdict
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple

from mpimcast.doctor.cover import smallest_cover

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Loss = dict[tuple[str, str], float]

# A part of what is sent: networks that work lose less, and dead ones more.
LOSS_MAX = 0.05
LOSS_SILENT = 0.99


class Fault(NamedTuple):
    """A node that has a part in what goes wrong.

    Attributes
    ----------
    node : str
        Its name.
    incoming : dict
        What part does not come to it, by the nodes from which too little comes.
    outgoing : dict
        What part of its own does not come, by the nodes to which too little comes.
    others : tuple of str
        The nodes that are not to blame.
    """

    node: str
    incoming: dict[str, float]
    outgoing: dict[str, float]
    others: tuple[str, ...]

    @property
    def silent(self) -> bool:
        """Whether nothing comes through, one way or the other."""
        return any(
            part >= LOSS_SILENT
            for way in (self.incoming, self.outgoing)
            for part in way.values()
        )

    def words(self, verb: str) -> str:
        """Say what is wrong; `verb` is what senders do."""
        parts = []
        if self.incoming:
            who = self._named(self.incoming)
            share = fmean(self.incoming.values())
            parts.append(_lost(share, f"what {who} {verb}", "it"))
        if self.outgoing:
            whom = self._named(self.outgoing)
            share = fmean(self.outgoing.values())
            parts.append(_lost(share, f"what it {verb}s", whom))
        if len(self.others) == 1 and self.node not in self.incoming:
            parts.append(f"or {self.others[0]} is to blame: of two nobody can tell")
        return "; ".join(parts)

    def _named(self, nodes: Mapping[str, float]) -> str:
        """Name nodes, or all who are well together."""
        if len(self.others) > 1 and set(nodes) >= set(self.others):
            return "others"
        many = 8
        names = ["itself" if name == self.node else name for name in nodes]
        more = f" and {len(names) - many} more" if len(names) > many else ""
        return ", ".join(names[:many]) + more


def _lost(share: float, what: str, whom: str) -> str:
    if share >= LOSS_SILENT:
        return f"nothing of {what} comes to {whom}"
    return f"{100 * share:.0f} % of {what} does not come to {whom}"


def by_node(lost: Mapping[tuple[int, int], float], nodes: Sequence[str]) -> Loss:
    """Return the mean of pairs of ranks for each pair of their nodes.

    Parameters
    ----------
    lost
        What part of what the first rank sent did not come to the second.
    nodes
        The node of each rank.
    """
    parts = defaultdict(list)
    for (source, target), part in lost.items():
        parts[nodes[source], nodes[target]].append(part)
    return {pair: fmean(values) for pair, values in parts.items()}


def find_faults(loss: Mapping[tuple[str, str], float]) -> list[Fault]:
    """Name few nodes that have a part in every pair which loses too much."""
    bad = {pair: part for pair, part in loss.items() if part > LOSS_MAX}
    guilty = smallest_cover(bad)
    nodes = dict.fromkeys(name for pair in loss for name in pair)
    others = tuple(name for name in nodes if name not in guilty)
    faults = []
    for node in (name for name in nodes if name in guilty):
        incoming = {one: part for (one, other), part in bad.items() if other == node}
        outgoing = {other: part for (one, other), part in bad.items() if one == node}
        outgoing.pop(node, None)  # what it does not hear of itself has come in
        faults.append(Fault(node, incoming, outgoing, others))
    return faults
