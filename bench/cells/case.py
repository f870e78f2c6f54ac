# SPDX-License-Identifier: BSD-3-Clause
"""A case: mpimcast in one scenario and size, beside what it is compared with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from bench.cells.ratio import ratio
from bench.cells.scenario import Scenario
from bench.cells.summary import OURS, Scenarios, Summaries, Summary
from bench.jobs.contenders import OWN, TUNED
from bench.page.spread import spread


class Case(NamedTuple):
    """mpimcast in one scenario and size, beside its contenders and other scenarios."""

    scenario: Scenario
    ours: Summary
    contenders: Summaries
    scenarios: Scenarios

    def by_best(self, *, tuned: bool | None = None) -> float | None:
        """Return the best peer's time, or the best (un)tuned one's, divided by ours."""
        contenders = {
            contender: sizes
            for contender, sizes in self.contenders.items()
            if tuned is None or contender in OWN or (contender in TUNED) == tuned
        }
        best = ratio(contenders, self.ours.block_bytes, self.ours.contender)
        return best.spread.median if best else None

    def by_least(self, of: Callable[[Summary], float | None]) -> float | None:
        """Return a figure of mpimcast as a multiple of the peers' least."""
        figures = [
            of(each)
            for contender, sizes in self.contenders.items()
            for each in sizes
            if contender not in OWN and each.block_bytes == self.ours.block_bytes
        ]
        least = min((each for each in figures if each is not None), default=None)
        ours = of(self.ours)
        return ours / least if ours and least else None

    def by_clean(self) -> float | None:
        """Return our time divided by that without loss or rival, over shared rounds."""
        scenario = self.scenario
        clean = scenario._replace(
            network=replace(scenario.network, loss=0.0, rival=False)
        )
        for each in self.scenarios.get(clean, {}).get(OURS, ()):
            both = set(each.rounds) & set(self.ours.rounds)
            if each.block_bytes == self.ours.block_bytes and both:
                ratios = [self.ours.rounds[n] / each.rounds[n] for n in both]
                return spread(ratios).median
        return None
