# SPDX-License-Identifier: BSD-3-Clause
"""The project's goals, and whether they are reached, computed from measurements alone.

A goal must hold in all scenarios and sizes to which it applies. So a report shows its
worst figure, and where that was measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from bench.cells import summary
from bench.cells.ratio import ratio
from bench.cells.scenario import Scenario
from bench.cells.summary import OURS, Scenarios, Summaries, Summary
from bench.jobs.contenders import OWN, TUNED
from bench.page.spread import spread
from bench.page.units import size

KIB, MIB = 1 << 10, 1 << 20

# The payload's share of a frame of 1,514 bytes: mpimcast's, and TCP's.
HEADERS_LEAVE = 1456 / 1514
TCP_HEADERS_LEAVE = 1448 / 1514


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


# Sizes of blocks.
_ANY = range(1, 1 << 30)
_BIG = range(256 * KIB, 1 << 30)
_UP_TO_1_MIB = range(4 * KIB, MIB + 1)
_ABOVE = range(MIB + 1, 16 * MIB + 1)
_SPANS = {
    _ANY: "",
    _BIG: "256 KiB and more",
    _UP_TO_1_MIB: "4 KiB to 1 MiB",
    _ABOVE: "above 1 MiB",
}


def _span(sizes: Sequence[int]) -> str:
    """Return sizes of blocks in words."""
    if isinstance(sizes, range):
        return _SPANS[sizes]
    return " and ".join(map(size, sizes))


class Goal(NamedTuple):
    """A bound that a figure must keep wherever the goal applies."""

    cell: str
    what: str
    least: bool  # whether `bound` is a minimum; otherwise a maximum
    bound: float
    figure: Callable[[Case], float | None]
    collective: str = "Allgather"
    sizes: Sequence[int] = _ANY
    applies: Callable[[Scenario], bool] = lambda _: True
    contender: str = OURS
    where: str = ""  # `applies` in words

    @property
    def label(self) -> str:
        """The goal's unique name."""
        where = [self.collective, self.where, _span(self.sizes)]
        return f"{self.cell}. {', '.join(filter(None, where))}: {self.what}"


class Reached(NamedTuple):
    """A goal, its worst figure, and where that was measured."""

    goal: Goal
    figure: float
    scenario: Scenario
    block_bytes: int

    @property
    def holds(self) -> bool:
        """Whether the goal is reached."""
        bound = self.goal.bound
        return self.figure >= bound if self.goal.least else self.figure <= bound


def reached(scenarios: Scenarios) -> Iterator[Reached]:
    """Yield the worst figure of each goal for which anything was measured."""
    for goal in GOALS:
        figures = [
            Reached(goal, figure, case.scenario, case.ours.block_bytes)
            for case in _cases(scenarios, goal)
            if (figure := goal.figure(case)) is not None
        ]
        if figures:
            worst = min if goal.least else max
            yield worst(figures, key=lambda each: each.figure)


def _cases(scenarios: Scenarios, goal: Goal) -> Iterator[Case]:
    for scenario, contenders in scenarios.items():
        if (scenario.cell, scenario.collective) != (goal.cell, goal.collective):
            continue
        for ours in contenders.get(goal.contender, ()):
            if ours.block_bytes in goal.sizes and goal.applies(scenario):
                yield Case(scenario, ours, contenders, scenarios)


# ---- figures -----------------------------------------------------------------


def _best(case: Case) -> float | None:
    return case.by_best()


def _tuned(case: Case) -> float | None:
    return case.by_best(tuned=True)


def _untuned(case: Case) -> float | None:
    return case.by_best(tuned=False)


def _by_bare(case: Case) -> float | None:
    best = case.by_best()
    return 1 / best if best else None


def _lost(case: Case) -> float:
    return case.ours.lost_chunks


def _trunk_blocks(case: Case) -> float | None:
    return case.ours.trunk_blocks


def _host_blocks(case: Case) -> float | None:
    return case.ours.host_blocks


def _link(case: Case) -> float | None:
    part = summary.link_part(case.scenario, case.ours)
    return None if part is None else part / HEADERS_LEAVE


def _processors(case: Case) -> float | None:
    return case.by_least(lambda each: each.processor_s)


def _sent(case: Case) -> float | None:
    return case.by_least(lambda each: each.host_blocks)


def _repaired(case: Case) -> float | None:
    lost_bytes = case.ours.lost_bytes
    return case.ours.repair_bytes / lost_bytes if lost_bytes else None


def _rival(case: Case) -> float | None:
    rate_mbit = case.scenario.network.rate_mbit
    if rate_mbit is None:
        return None
    return case.ours.rival_bytes_per_s * 8 / (rate_mbit * 1e6) / TCP_HEADERS_LEAVE


def _at(**what: object) -> Callable[[Scenario], bool]:
    """Return a test of a scenario: its network, or `nranks`, has these values."""
    return lambda scenario: all(
        (scenario.nranks if name == "nranks" else getattr(scenario.network, name))
        == value
        for name, value in what.items()
    )


_PAIR = "Allgather+Reduce_scatter"

_OVER_MPICH = "mpimcast-mpich"

_LEAST, _MOST = True, False
_BY_CLEAN = "time as a multiple of that without loss"
_BEST = "times as fast as the best peer"
_CHAIN = "times as fast as the tuned chain"

GOALS = (
    Goal("A", _BEST, _LEAST, 0.98, _best, sizes=_BIG),
    Goal("A", "share of the link that headers leave", _LEAST, 0.985, _link, sizes=_BIG),
    Goal("A", "blocks sent by a host", _MOST, 1.06, _host_blocks, sizes=_BIG),
    Goal("A", "chunks lost", _MOST, 0, _lost, sizes=_BIG),
    Goal(
        "A",
        "processor time as a share of the best peer's",
        _MOST,
        1 / 3,
        _processors,
        sizes=[512 * KIB],
        applies=_at(nranks=8),
        where="P = 8",
    ),
    Goal("A", _CHAIN, _LEAST, 0.97, _tuned, "Bcast", [512 * KIB]),
    Goal("A", _CHAIN, _LEAST, 1.0, _tuned, "Bcast", [4 * MIB]),
    Goal(
        "A",
        "times as fast as the better default",
        _LEAST,
        2,
        _untuned,
        "Bcast",
        [512 * KIB],
    ),
    Goal("A", "blocks sent by the root", _MOST, 1.06, _host_blocks, "Bcast", _BIG),
    Goal(
        "B",
        _BEST,
        _LEAST,
        1.7,
        _best,
        sizes=_BIG,
        applies=_at(order="block"),
        where="block order",
    ),
    Goal(
        "B",
        _BEST,
        _LEAST,
        3,
        _best,
        sizes=_BIG,
        applies=_at(order="interleaved"),
        where="interleaved order",
    ),
    Goal("B", "blocks over the trunk", _MOST, 4.3, _trunk_blocks, sizes=_BIG),
    Goal("C", _BEST, _LEAST, 0.97, _best, sizes=[64 * KIB]),
    Goal("C", _BEST, _LEAST, 1.1, _best, sizes=[MIB, 4 * MIB]),
    Goal("C", _BEST, _LEAST, 0.97, _best, "Bcast", [64 * KIB]),
    Goal("C", _BEST, _LEAST, 1, _best, "Bcast", [MIB]),
    Goal("C", _BEST, _LEAST, 1.25, _best, "Bcast", [4 * MIB]),
    *(
        Goal(
            "D",
            _BY_CLEAN,
            _MOST,
            bound,
            Case.by_clean,
            name,
            applies=_at(loss=loss),
            where=f"{100 * loss:g} % lost",
        )
        for loss, bound in ((0.001, 1.05), (0.01, 1.2))
        for name in ("Allgather", "Bcast")
    ),
    *(
        Goal("D", "bytes repaired for each byte lost", _MOST, 1.3, _repaired, name)
        for name in ("Allgather", "Bcast")
    ),
    *(
        Goal("D", *what, name, applies=_at(rival=True), where="beside TCP")
        for what in (
            ("time as a multiple of that without the stream", _MOST, 3, Case.by_clean),
            ("TCP's share of the link", _LEAST, 1 / 3, _rival),
        )
        for name in ("Allgather", "Bcast")
    ),
    *(
        Goal("E", _BEST, _LEAST, bound, _best, name, sizes)
        for bound, sizes in ((1.2, _UP_TO_1_MIB), (0.97, _ABOVE))
        for name in ("Allgather", "Bcast")
    ),
    Goal("F", f"{_BEST}, over MPICH", _LEAST, 1, _best, _PAIR, contender=_OVER_MPICH),
    Goal(
        "F",
        "bytes sent as a share of the best peer's",
        _MOST,
        0.6,
        _sent,
        _PAIR,
        contender=_OVER_MPICH,
    ),
    Goal("V", "time as a multiple of the bare program's", _MOST, 1.25, _by_bare),
)
