# SPDX-License-Identifier: BSD-3-Clause
"""All ranks, their nodes, and the exchange of facts between them in bounded time."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from mpi4py import MPI

from mpimcast._mpi.agreement import exchange
from mpimcast._mpi.completion import complete
from mpimcast._mpi.private import Private
from mpimcast.cli.node import node_name
from mpimcast.errors import TimedOut

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


_NAME_BYTES = 64


class World:
    """The ranks of ``COMM_WORLD``, each of which tells rank 0 what stage it is in.

    Parameters
    ----------
    deadline_s
        The time of the monotonic clock at which waiting ends.

    Attributes
    ----------
    nodes : list of str
        The node of each rank; empty for ranks whose node is not known yet.
    """

    def __init__(self, deadline_s: float) -> None:
        world = MPI.COMM_WORLD
        self.rank, self.size = world.rank, world.size
        self.nodes = [""] * self.size
        self._deadline_s = deadline_s
        self._stage = ""
        self._ncalls = 0
        self._calls: list[MPI.Request] = []  # rank 0's receives in this stage
        self._requests: list[MPI.Request] = []  # all stages' sends and receives
        self._words: list[object] = []  # memory that MPI may still read or write

    def meet(self) -> None:
        """Begin the first stage, and wait until all ranks have begun it."""
        self.begin("launch")
        private, request = MPI.Intracomm.Idup(MPI.COMM_WORLD)
        complete(request, self.left_s, self._stage)
        self._private = Private(private)

    @property
    def left_s(self) -> float:
        """The seconds left for waiting."""
        return max(self._deadline_s - time.monotonic(), 0.0)

    def begin(self, stage: str) -> None:
        """Tell rank 0 that this rank has reached a stage, and on which node."""
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
        """Return, on rank 0, the nodes with a rank that has reached this stage."""
        names: Any = self._words[-1]
        come = (bytes(name).rstrip(b"\0") for name in names)
        return {node_name(), *(name.decode(errors="replace") for name in come)}

    def part(self) -> None:
        """End once all ranks do, since the first rank to fail may end the others."""
        self.exchange()
        MPI.Request.Waitall(self._requests)
        self._private.Free()

    def absent(self) -> list[int]:
        """Return, on rank 0, the ranks that have not reached this stage."""
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
        """Return the ranks of a node."""
        return [rank for rank, name in enumerate(self.nodes) if name == node]

    def names(self, ranks: Iterable[int]) -> list[str]:
        """Return the nodes of some ranks, each once."""
        return list(dict.fromkeys(self.nodes[rank] for rank in ranks))
