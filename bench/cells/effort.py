# SPDX-License-Identifier: BSD-3-Clause
"""The effort of a run: how much of each cell is measured, and with which contenders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bench.jobs.contenders import CONTENDERS, Contender
from bench.jobs.payload import payload_bytes
from bench.jobs.setup import Setup, Task

# The sizes of blocks in bytes, by collective.
Sizes = Mapping[str, Sequence[int]]

_ITERATIONS_MIN = 2  # operations of a task, however long they take

# Estimates of an operation's rate and latency where links have no limit.
_UNLIMITED_MBIT = 2000
_LATENCY_S = 2e-4


@dataclass(frozen=True)
class Effort:
    """The part of a cell that is measured, and how often it is.

    Attributes
    ----------
    rounds : int
        The number of turns of each contender.
    task_s : float
        The seconds that all operations of a task should take at the links' rates.
    iterations : int
        The greatest number of operations of a task.
    contenders : tuple of Contender
        The contenders that take part.
    only : str
        The only collective to measure, or empty for all of a cell's.
    first_round : int
        The number of the first round; the numbers of earlier runs are not used again.
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
        """Return the contenders that take part in a cell.

        A contender that names no cells takes part in all of them.
        """
        return [each for each in self.contenders if cell in (each.cells or cell)]

    def tasks(self, setup: Setup, sizes: Sizes) -> list[Task]:
        """Return a task for each collective and size, with its number of operations."""
        return [
            Task(name, nbytes, self._count(ideal_s(setup, name, nbytes)))
            for name, each in sizes.items()
            for nbytes in each
            if self.only in ("", name)
        ]

    def _count(self, seconds: float) -> int:
        """Return how many operations fit into `task_s`, within the bounds."""
        return min(self.iterations, max(_ITERATIONS_MIN, int(self.task_s / seconds)))


def ideal_s(setup: Setup, collective: str, nbytes: int) -> float:
    """Return the least time, in seconds, in which each host can receive its data.

    Links without a limit count as if they had the rate that this machine's memory
    reaches, and every operation takes a latency.
    """
    rates = (setup.network.rate_mbit, setup.network.trunk_mbit)
    limits = (rate for rate in rates if rate is not None)
    rate_mbit = min(limits, default=_UNLIMITED_MBIT)
    each = setup.network.ranks_per_host
    payload = payload_bytes(collective, len(setup.numbers), nbytes, each)
    return payload * 8 / (rate_mbit * 1e6) + _LATENCY_S
