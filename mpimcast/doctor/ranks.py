# SPDX-License-Identifier: BSD-3-Clause
"""All ranks, their nodes, and what they tell each other in bounded time."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from mpi4py import MPI

from mpimcast.agreement import Private, complete, exchange
from mpimcast.errors import TimedOut
from mpimcast.launch import node_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


_NAME_BYTES = 64


class Ranks:
    """The ranks of ``COMM_WORLD``, each of which says how far it has come.

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
        self._stage = ""
        self._ncalls = 0
        self._calls: list[MPI.Request] = []  # of the stage
        self._requests: list[MPI.Request] = []  # of all stages
        self._words: list[object] = []  # that MPI may still read or write

    def meet(self) -> None:
        """Begin: wait until all ranks do so."""
        self.begin("launch")
        private, request = MPI.Intracomm.Idup(MPI.COMM_WORLD)
        complete(request, self.left_s, self._stage)
        self._private = Private(private)

    @property
    def left_s(self) -> float:
        """How long waiting may still last."""
        return max(self._deadline_s - time.monotonic(), 0.0)

    def begin(self, stage: str) -> None:
        """Tell rank 0 that this rank has come so far, and from where."""
        self._stage = stage
        self._ncalls += 1
        if self.rank:
            word = node_name().encode()[:_NAME_BYTES]
            self._words.append(word)
            self._requests.append(MPI.COMM_WORLD.Isend(word, 0, self._ncalls))
            return
        names = [bytearray(_NAME_BYTES) for _ in range(self.size)]
        self._words.append(names)
        self._calls = [
            MPI.COMM_WORLD.Irecv(names[rank], rank, self._ncalls)
            for rank in range(1, self.size)
        ]
        self._requests += self._calls

    def present(self) -> set[str]:
        """Return, on rank 0, the nodes from which some rank has come so far."""
        names: Any = self._words[-1]
        come = (bytes(name).rstrip(b"\0") for name in names)
        return {node_name(), *(name.decode(errors="replace") for name in come)}

    def part(self) -> None:
        """End, once all ranks do so: whoever fails first may end the others."""
        self.exchange()
        MPI.Request.Waitall(self._requests)
        self._private.Free()

    def absent(self) -> list[int]:
        """Return, on rank 0, the ranks that have not come so far."""
        return [rank for rank, call in enumerate(self._calls, 1) if not call.Test()]

    def exchange(
        self, fact: object = None, meanwhile: Callable[[], None] = lambda: None
    ) -> list[Any]:
        """Give every rank's `fact`, fit for JSON, to all ranks.

        Raises
        ------
        TimedOut
            If some rank does not take part before the deadline.
        """
        try:
            return exchange(self._private, fact, self.left_s, meanwhile)
        except TimedOut:
            raise TimedOut(f"{self._stage}: not all ranks take part") from None

    def ranks_of(self, node: str) -> list[int]:
        """List the ranks of a node."""
        return [rank for rank, name in enumerate(self.nodes) if name == node]

    def names(self, ranks: Iterable[int]) -> list[str]:
        """List the nodes of some ranks, each once."""
        return list(dict.fromkeys(self.nodes[rank] for rank in ranks))
