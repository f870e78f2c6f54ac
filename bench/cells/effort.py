# SPDX-License-Identifier: BSD-3-Clause
"""The effort of a run: how much of each cell is measured, and with which contenders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bench.jobs.contenders import CONTENDERS, Contender
from bench.jobs.payload import payload_bytes
from bench.jobs.setup import Setup, Task

# By collective, the bytes of blocks.
Sizes = Mapping[str, Sequence[int]]


@dataclass(frozen=True)
class Effort:
    """How much to measure.

    Attributes
    ----------
    rounds : int
        The number of turns of each contender.
    task_s : float
        The seconds that the operations of a task should take at the links' rates.
    iterations : int
        The greatest number of operations of a task.
    contenders : tuple of Contender
        The contenders that take part.
    only : str
        The collective to measure; empty: all of a cell's collectives.
    first_round : int
        The number of the first round.
    """

    rounds: int = 2
    task_s: float = 0.4
    iterations: int = 10
    contenders: tuple[Contender, ...] = tuple(CONTENDERS.values())
    only: str = ""
    first_round: int = 0

    def turns(self) -> range:
        """Return the numbers of the rounds."""
        return range(self.first_round, self.first_round + self.rounds)

    def contenders_of(self, cell: str) -> list[Contender]:
        """Return the contenders that take part in a cell."""
        return [each for each in self.contenders if cell in (each.cells or cell)]

    def tasks(self, setup: Setup, sizes: Sizes) -> list[Task]:
        """Return tasks for some sizes by collective, as many operations as fit."""
        return [
            Task(name, nbytes, self._count(ideal_s(setup, name, nbytes)))
            for name, each in sizes.items()
            for nbytes in each
            if self.only in ("", name)
        ]

    def _count(self, seconds: float) -> int:
        return min(self.iterations, max(2, int(self.task_s / seconds)))


def ideal_s(setup: Setup, collective: str, nbytes: int) -> float:
    """Return the least time that links need for the data that each host receives."""
    rates = (setup.network.rate_mbit, setup.network.trunk_mbit)
    rate_mbit = min((rate for rate in rates if rate is not None), default=2000)
    payload = payload_bytes(collective, len(setup.numbers), nbytes)
    return payload * 8 / (rate_mbit * 1e6) + 2e-4
