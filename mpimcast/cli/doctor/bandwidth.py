# SPDX-License-Identifier: BSD-3-Clause
"""Measures each node's link, to name the slow ones among many."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from mpimcast.cli.doctor.finding import Finding
from mpimcast.cli.doctor.survey import Burst, SurveyPlan, survey

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mpimcast.cli.doctor.report import Report
    from mpimcast.cli.doctor.trial import Trial
    from mpimcast.cli.doctor.world import World

    Rates = dict[tuple[str, str], float]

# The most that a node sends: datagrams, bytes and seconds.
_SENT_MAX = 4096
_SENT_BYTES = 8 << 20
_SEND_S = 0.1
_PART = 64  # datagrams in one burst

# A link is slow below this fraction of the usual rate.
_SLOW_PART = 0.5

# The most ways that are measured alone, one after the other; each takes half a second.
_SUSPECTS_MAX = 8


class Way(NamedTuple):
    """One direction of a node's link."""

    node: str
    leaving: bool

    def words(self) -> str:
        """Return in words what the node does in this direction."""
        return "it sends" if self.leaving else "it receives"


def check(report: Report, world: World, trial: Trial) -> None:
    """Let all nodes send to others at once, then measure the slow ones alone."""
    first = {world.nodes[rank]: rank for rank in reversed(trial.members)}
    names = sorted(first, key=lambda name: first[name])
    if len(names) == 1:
        report.skip(["bandwidth"], "there is only one node")
    rates: Rates = {}
    # Each node sends to two others, so that a slow node does not make its neighbours
    # seem slow.
    for step in range(1, min(len(names), 3)):
        pairs = list(zip(names, names[step:] + names[:step], strict=True))
        rates |= _rates(world, trial, first, pairs)
    ways = best(rates)
    alone: Rates = {}
    slow: dict[Way, float] = {}
    usual = median(ways.values()) if ways else 0.0
    suspects = [way for way, rate in ways.items() if rate < _SLOW_PART * usual]
    fine = [name for name in names if name not in {way.node for way in suspects}]
    if suspects and len(fine) > 1:
        pairs = [_pair(way, fine[0]) for way in suspects[:_SUSPECTS_MAX]]
        for pair in [(fine[0], fine[1]), *pairs]:
            alone |= _rates(world, trial, first, [pair])
        usual = alone[fine[0], fine[1]]
        slow = {way: alone[_pair(way, fine[0])] for way in suspects[:_SUSPECTS_MAX]}
    elif suspects:
        # Two nodes alone do not show which is slow: name the one that sends.
        slow = {way: ways[way] for way in suspects if way.leaving}
    report.measured["bandwidth"] = {
        "bytes_per_s": _named(rates),
        "alone_bytes_per_s": _named(alone),
    }
    slow = {way: rate for way, rate in slow.items() if rate < _SLOW_PART * usual}
    report.add(_findings(slow, usual, world, trial))


def best(rates: Mapping[tuple[str, str], float]) -> dict[Way, float]:
    """Return the best rate in each direction of each node's link."""
    ways: dict[Way, float] = {}
    for (source, target), rate in rates.items():
        for way in (Way(source, leaving=True), Way(target, leaving=False)):
            ways[way] = max(rate, ways.get(way, 0.0))
    return ways


def _pair(way: Way, other: str) -> tuple[str, str]:
    return (way.node, other) if way.leaving else (other, way.node)


def _findings(
    slow: Mapping[Way, float], usual: float, world: World, trial: Trial
) -> Iterable[Finding]:
    for node in dict.fromkeys(way.node for way in slow):
        said = " and ".join(
            f"{way.words()} at {8e-6 * rate:,.0f} Mbit/s"
            for way, rate in slow.items()
            if way.node == node
        )
        device = trial.devices[world.ranks_of(node)[0]]
        yield Finding(
            node,
            "bandwidth",
            "degraded",
            f"{said}; others are at {8e-6 * usual:,.0f} Mbit/s",
            f"on {node}: ethtool {device}; tc qdisc show dev {device}; check its "
            "cable and port",
            "the slowest link's speed",
            leave_out=True,
        )


def _rates(
    world: World,
    trial: Trial,
    first: Mapping[str, int],
    pairs: Iterable[tuple[str, str]],
) -> Rates:
    """Let some nodes send to others as fast as they can; return bytes per second.

    Parameters
    ----------
    world, trial
        All ranks, and the team of the ranks concerned.
    first
        The rank that acts for each node.
    pairs
        Pairs of nodes; the first sends to the second.
    """
    edges = {(first[one], first[two]) for one, two in pairs}
    nbytes = trial.chunk_bytes
    nnumbers = max(_PART, min(_SENT_MAX, _SENT_BYTES // nbytes) // _PART * _PART)
    bursts = [
        Burst(trial.members.index(target), range(number, number + _PART), nbytes)
        for source, target in edges
        for number in range(0, nnumbers, _PART)
        if source == world.rank
    ]
    awaited = {trial.members.index(one) for one, two in edges if two == world.rank}
    plan = SurveyPlan(
        nnumbers,
        bursts,
        lambda place, heard: place not in awaited or heard.ndistinct == nnumbers,
        for_s=_SEND_S,
    )
    result = survey(world, trial, plan)
    rates = {}
    for source, target in edges:
        heard = result.heard[source, target]
        spent_s = 1e-9 * (heard.last_ns - heard.first_ns)
        later_bytes = (heard.ndistinct - 1) * nbytes
        rates[world.nodes[source], world.nodes[target]] = (
            later_bytes / spent_s if spent_s > 0 else 0.0
        )
    return rates


def _named(rates: Rates) -> dict[str, int]:
    return {f"{one} to {two}": round(rate) for (one, two), rate in rates.items()}
