# SPDX-License-Identifier: BSD-3-Clause
"""All ranks, their nodes, and what they tell each other in bounded time."""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING, Any

from mpi4py import MPI

from mpimcast.agreement import Private, complete, exchange
from mpimcast.errors import TimedOut

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class Ranks:
    """The ranks of ``COMM_WORLD``, each of which says where it is before it waits.

    Parameters
    ----------
    deadline_s
        When waiting ends, of the monotonic clock.

    Attributes
    ----------
    nodes : list of str
        The node of each rank, as far as this rank has heard.
    """

    def __init__(self, deadline_s: float) -> None:
        world = MPI.COMM_WORLD
        self.rank, self.size = world.rank, world.size
        self.nodes = [""] * self.size
        self._deadline_s = deadline_s
        self._calls: list[MPI.Request] = []
        self._words: list[object] = []
        self._stage = ""
        private, request = MPI.Intracomm.Idup(world)
        self._private = Private(private)
        # Two tags for two stages that follow: a call is over before its tag is new.
        self._ncalls = 0
        complete(request, self.left_s, "beginning")

    @property
    def left_s(self) -> float:
        """How long waiting may still last."""
        return max(self._deadline_s - time.monotonic(), 0.0)

    def begin(self, stage: str) -> None:
        """Tell rank 0 that this rank has come so far."""
        self._stage = stage
        tag = self._ncalls = self._ncalls + 1
        if self.rank:
            word = bytearray(1)
            self._words.append((word, self._private.Isend(word, 0, tag)))
            return
        words = [bytearray(1) for _ in range(self.size)]
        self._words.append(words)
        self._calls = [
            self._private.Irecv(words[rank], rank, tag) for rank in range(1, self.size)
        ]

    def absent(self) -> list[int]:
        """Return, on rank 0, the ranks that have not come so far."""
        return [rank for rank, call in enumerate(self._calls, 1) if not call.Test()]

    def exchange(self, fact: object) -> list[Any]:
        """Give every rank's `fact`, fit for JSON, to all ranks.

        Raises
        ------
        TimedOut
            If some rank does not take part before the deadline.
        """
        try:
            return exchange(self._private, fact, self.left_s)
        except TimedOut:
            raise TimedOut(f"{self._stage}: not all ranks took part") from None

    def ranks_of(self, node: str) -> list[int]:
        """List the ranks of a node."""
        return [rank for rank, name in enumerate(self.nodes) if name == node]

    def node_names(self) -> list[str]:
        """List the nodes, each once, in the order of their first ranks."""
        return list(dict.fromkeys(self.nodes))

    def names(self, ranks: Iterable[int]) -> list[str]:
        """List the nodes of some ranks, each once."""
        return list(dict.fromkeys(self.nodes[rank] for rank in ranks))


def odd_ones(values: Sequence[Any]) -> tuple[Any, list[int]]:
    """Return what most have, the first of equally many, and who has something else.

    The values are anything that can be a key of a dictionary.
    """
    usual = Counter(values).most_common(1)[0][0]
    return usual, [place for place, value in enumerate(values) if value != usual]
