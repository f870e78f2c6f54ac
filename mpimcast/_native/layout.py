# SPDX-License-Identifier: BSD-3-Clause
"""Which ranks are on which node, and where a stream lies in a node's memory."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple


class Layout(NamedTuple):
    """Which ranks are on which node.

    Attributes
    ----------
    nodes : tuple of int
        The node of each rank; nodes are numbered by their first ranks.
    rails : tuple of tuple of int
        For each rail, the rank that leads each node on it.
    """

    nodes: tuple[int, ...]
    rails: tuple[tuple[int, ...], ...]

    @property
    def nnodes(self) -> int:
        """The number of nodes."""
        return len(self.rails[0])

    @property
    def reads_across(self) -> bool:
        """Whether ranks may read each other's own memory: two that are alone."""
        return self.nodes == (0, 0)

    def members(self, rank: int) -> tuple[int, ...]:
        """Return the ranks of a rank's node."""
        return tuple(
            each for each, node in enumerate(self.nodes) if node == self.nodes[rank]
        )

    def leaders(self, rank: int) -> list[int]:
        """Return the leaders of a rank's node, by rail."""
        return [rail[self.nodes[rank]] for rail in self.rails]

    def rail(self, rank: int) -> tuple[int, ...]:
        """Return the leaders of the rail on which a rank leads; () if on none."""
        return next((rail for rail in self.rails if rank in rail), ())

    def firsts(self) -> list[int]:
        """Return the first rank of each node."""
        return [self.nodes.index(node) for node in range(self.nnodes)]

    def __str__(self) -> str:
        """Return the numbers of nodes and ranks, for people."""
        if self.nnodes == 1:
            return f"one node, {len(self.nodes)} ranks"
        counts = Counter(self.nodes).values()
        low, high = min(counts), max(counts)
        ranks = f"{low}" if low == high else f"{low} to {high}"
        return f"{self.nnodes} nodes, on each of which {ranks} ranks share memory"


class Slots(NamedTuple):
    """The slots of a node stream: how many, and the bytes of each."""

    number: int
    nbytes: int


class Place(NamedTuple):
    """Where a node stream lies in the segment, and between which ranks it is.

    Attributes
    ----------
    layout : Layout
        All ranks and their nodes.
    rank : int
        This rank.
    offset_bytes : int
        Where the stream's memory begins in the segment.
    slots : Slots
        Its slots.
    crowded : bool
        Whether some machine has fewer processors than ranks.
    """

    layout: Layout
    rank: int
    offset_bytes: int
    slots: Slots
    crowded: bool
