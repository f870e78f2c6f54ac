# SPDX-License-Identifier: BSD-3-Clause
"""A case on which goals (goal.py) are checked: a scenario with blocks of one size."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from bench.cells.ratio import ratio
from bench.cells.scenario import Scenario
from bench.cells.summary import OURS, Scenarios, Summaries, Summary
from bench.jobs.contenders import OUR_CONTENDERS, TUNED
from bench.page.spread import spread


class Case(NamedTuple):
    """One scenario with blocks of one size, and what was measured there and elsewhere.

    Attributes
    ----------
    scenario : Scenario
        The scenario.
    ours : Summary
        The results of mpimcast, or of a variant of it, for this scenario and size.
    contenders : Summaries
        The results of all contenders in this scenario, for all sizes.
    scenarios : Scenarios
        The results of all contenders in all scenarios, for all sizes.
    """

    scenario: Scenario
    ours: Summary
    contenders: Summaries
    scenarios: Scenarios

    def speed_over_best(self, *, tuned: bool | None = None) -> float | None:
        """Return mpimcast's speed as a multiple of the best peer's; None if unknown.

        If `tuned` is True, consider only peers that are tuned by hand; if it is False,
        only the others; if it is None, all peers.
        """
        # The results of mpimcast stay, since ratio() looks for them here, too.
        contenders = {
            contender: sizes
            for contender, sizes in self.contenders.items()
            if tuned is None
            or contender in OUR_CONTENDERS
            or (contender in TUNED) == tuned
        }
        best = ratio(contenders, self.ours.block_bytes, self.ours.contender)
        return best.spread.median if best else None

    def over_smallest_of_peers(
        self, quantity_of: Callable[[Summary], float | None]
    ) -> float | None:
        """Return mpimcast's value of a quantity as a multiple of the peers' smallest.

        `quantity_of` takes a contender's results and returns its value, or None if that
        is unknown. Peers whose value is unknown do not count. Return None if mpimcast's
        value is unknown or 0, if no peer's is known, or if the smallest is 0.
        """
        quantities = [
            quantity_of(each)
            for contender, sizes in self.contenders.items()
            for each in sizes
            if contender not in OUR_CONTENDERS
            and each.block_bytes == self.ours.block_bytes
        ]
        smallest = min((each for each in quantities if each is not None), default=None)
        ours = quantity_of(self.ours)
        return ours / smallest if ours and smallest else None

    def time_over_undisturbed(self) -> float | None:
        """Return mpimcast's time as a multiple of its time on an undisturbed network.

        The undisturbed network is the scenario's network without loss and without a
        competing TCP stream. Return the median over the rounds in which both times
        were measured, or None if there is no such round.
        """
        scenario = self.scenario
        undisturbed = scenario._replace(
            network=replace(scenario.network, loss=0.0, rival=False)
        )
        for each in self.scenarios.get(undisturbed, {}).get(OURS, ()):
            both = set(each.rounds) & set(self.ours.rounds)
            if each.block_bytes == self.ours.block_bytes and both:
                ratios = [self.ours.rounds[n] / each.rounds[n] for n in both]
                return spread(ratios).median
        return None
