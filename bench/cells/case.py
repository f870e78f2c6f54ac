# SPDX-License-Identifier: BSD-3-Clause
"""A case in which goals (goal.py) are checked: a scenario with blocks of one size."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import NamedTuple

from bench.cells.ratio import find, ratio, share, speed
from bench.cells.scenario import Scenario
from bench.cells.summary import Scenarios, Summaries, Summary
from bench.jobs.contenders import GLOO, OUR_CONTENDERS, PEERS, TUNED
from bench.page.spread import spread


class Case(NamedTuple):
    """One scenario with blocks of one size, and the results there and elsewhere.

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

    def _peers(self) -> Iterator[Summary]:
        """Yield the results of all peers for this scenario and size."""
        for contender, summaries in self.contenders.items():
            if contender in PEERS:
                for theirs in summaries:
                    if theirs.block_bytes == self.ours.block_bytes:
                        yield theirs

    def speed_over_best(self, *, tuned: bool | None = None) -> float | None:
        """Return mpimcast's speed as a multiple of the best peer's; None if unknown.

        If `tuned` is True, only hand-tuned peers count. If it is False, only the others
        count. If it is None, all peers count.
        """
        # ratio() takes mpimcast's own results from the same dictionary as the peers'.
        contenders = {
            contender: summaries
            for contender, summaries in self.contenders.items()
            if tuned is None
            or contender in OUR_CONTENDERS
            or (contender in TUNED) == tuned
        }
        best = ratio(contenders, self.ours.block_bytes, self.ours.contender)
        return best.spread.median if best else None

    def speed_over_gloo(self) -> float | None:
        """Return mpimcast's speed as a multiple of gloo's, or None if unknown."""
        theirs = find(self.contenders, GLOO, self.ours.block_bytes)
        over = speed(theirs, self.ours) if theirs else None
        return over.median if over else None

    def program_speed(self, first: int = 0) -> float | None:
        """Return the best peer's time for a whole program as a multiple of mpimcast's.

        A program is all operations of a round from number `first` on. Return the median
        over the rounds, or None if no peer was measured.
        """
        peers = [theirs.operations_s for theirs in self._peers()]
        ratios = [
            min(sum(peer[round_][first:]) for peer in peers if round_ in peer)
            / sum(times[first:])
            for round_, times in self.ours.operations_s.items()
            if any(round_ in peer for peer in peers)
        ]
        return spread(ratios).median if ratios else None

    def quantity_over_smallest(
        self, quantity_of: Callable[[Summary], float | None]
    ) -> float | None:
        """Return mpimcast's value of a quantity as a multiple of the peers' smallest.

        `quantity_of` takes a contender's results and returns the contender's value, or
        None if the value is unknown. Peers with an unknown value do not count. Return
        None if mpimcast's value is unknown or 0, or if the smallest is unknown or 0.
        """
        values = [quantity_of(theirs) for theirs in self._peers()]
        known = [value for value in values if value is not None]
        smallest = min(known, default=None)
        return share(quantity_of(self.ours), smallest)

    def processor_share_of_gloo(self) -> float | None:
        """Return mpimcast's processor time as a share of gloo's, or None if unknown."""
        theirs = find(self.contenders, GLOO, self.ours.block_bytes)
        return share(self.ours.processor_s, theirs.processor_s if theirs else None)

    def time_over(self, contender: str) -> float | None:
        """Return mpimcast's time as a multiple of a contender's; None if unknown."""
        theirs = find(self.contenders, contender, self.ours.block_bytes)
        over = speed(self.ours, theirs) if theirs else None
        return over.median if over else None

    def time_over_undisturbed(self) -> float | None:
        """Return mpimcast's time as a multiple of its time on an undisturbed network.

        Both times are of the same variant of mpimcast. The undisturbed network is the
        scenario's network without loss and without a competing TCP stream. Return the
        median over the rounds in which both times were measured, or None if there is no
        such round.
        """
        scenario = self.scenario
        undisturbed = scenario._replace(
            network=replace(scenario.network, loss=0.0, rival=False)
        )
        contenders = self.scenarios.get(undisturbed, {})
        for baseline in contenders.get(self.ours.contender, ()):
            both = set(baseline.rounds) & set(self.ours.rounds)
            if baseline.block_bytes == self.ours.block_bytes and both:
                ratios = [self.ours.rounds[n] / baseline.rounds[n] for n in both]
                return spread(ratios).median
        return None
