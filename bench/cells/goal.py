# SPDX-License-Identifier: BSD-3-Clause
"""A goal, which bounds a figure, and the worst figure that was measured."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from bench.cells.case import Case
from bench.cells.scenario import Scenario
from bench.cells.summary import OURS
from bench.page.units import size

KIB, MIB = 1 << 10, 1 << 20

# Ranges of block sizes to which goals apply, in bytes, and their names in reports.
ANY = range(1, 1 << 30)
BIG = range(256 * KIB, 1 << 30)
UP_TO_1_MIB = range(4 * KIB, MIB + 1)
FROM_4_KIB = range(4 * KIB, 1 << 30)
FROM_64_KIB = range(64 * KIB, 1 << 30)
TO_4_MIB = range(512 * KIB, 4 * MIB + 1)
ABOVE_1_MIB = range(MIB + 1, 16 * MIB + 1)
_SPANS = {
    ANY: "",
    BIG: "256 KiB and more",
    FROM_4_KIB: "4 KiB and more",
    FROM_64_KIB: "64 KiB and more",
    TO_4_MIB: "512 KiB to 4 MiB",
    UP_TO_1_MIB: "4 KiB to 1 MiB",
    ABOVE_1_MIB: "above 1 MiB",
}


def _span(sizes: Sequence[int]) -> str:
    """Return block sizes in words."""
    if isinstance(sizes, range):
        return _SPANS[sizes]
    return " and ".join(map(size, sizes))


class Goal(NamedTuple):
    """A bound that a figure must keep wherever the goal applies.

    Attributes
    ----------
    cell : str
        The letter of the cell.
    what : str
        The figure in words.
    is_minimum : bool
        Whether `bound` is a minimum; otherwise it is a maximum.
    bound : float
        The bound.
    figure : callable
        Returns the figure in a case, or None if it was not measured there.
    collective, sizes, applies, contender
        Where the goal applies: the collective, the block sizes in bytes, a test of the
        scenario, and the name of the contender.
    where : str
        The test of the scenario in words.
    """

    cell: str
    what: str
    is_minimum: bool
    bound: float
    figure: Callable[[Case], float | None]
    collective: str = "Allgather"
    sizes: Sequence[int] = ANY
    applies: Callable[[Scenario], bool] = lambda _: True
    contender: str = OURS
    where: str = ""

    @property
    def label(self) -> str:
        """The goal's unique name."""
        where = [self.collective, self.where, _span(self.sizes)]
        return f"{self.cell}. {', '.join(filter(None, where))}: {self.what}"


class Reached(NamedTuple):
    """A goal, its worst figure, and the scenario and block size of that figure."""

    goal: Goal
    figure: float
    scenario: Scenario
    block_bytes: int

    @property
    def holds(self) -> bool:
        """Whether the goal is reached."""
        bound = self.goal.bound
        return self.figure >= bound if self.goal.is_minimum else self.figure <= bound
