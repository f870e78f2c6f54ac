# SPDX-License-Identifier: BSD-3-Clause
"""Checks control traffic from rank to rank: short datagrams, or messages."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

from mpimcast.cli.doctor.blame import by_node, find_faults
from mpimcast.cli.doctor.finding import Finding
from mpimcast.cli.doctor.survey import Burst, SurveyPlan, survey

if TYPE_CHECKING:
    from mpimcast._native.endpoint import Heard
    from mpimcast.cli.doctor.blame import Fault
    from mpimcast.cli.doctor.report import Report
    from mpimcast.cli.doctor.trial import Trial
    from mpimcast.cli.doctor.world import World

_SENT = 16
_BYTES = 64

# With more ranks than this, each asks only the ranks at distances that are powers of
# two, as in a barrier.
_ALL_PAIRS_MAX = 64


def check(report: Report, world: World, trial: Trial) -> None:
    """Let members ask each other, and name the nodes that answer badly."""
    pairs = _ask(world, trial)
    lost = {pair: 1 - heard.ndistinct / _SENT for pair, heard in pairs.items()}
    trips_us = [h.round_trip_us for h in pairs.values() if h.nanswers]
    report.measured["control"] = {
        "sent": _SENT,
        "pairs": len(pairs),
        "lost": {f"{one}-{two}": part for (one, two), part in lost.items() if part},
        "round_trip_us": {
            "median": median(trips_us) if trips_us else None,
            "max": max(trips_us, default=None),
        },
    }
    faults = find_faults(by_node(lost, world.nodes))
    report.add(_finding(fault, world, trial) for fault in faults)


def _ask(world: World, trial: Trial) -> dict[tuple[int, int], Heard]:
    """Let members ask each other; return what the asked heard, by pairs of ranks."""
    nranks = len(trial.members)
    partners = _partners(nranks)
    mine = trial.endpoint.rank if trial.endpoint is not None else 0
    # One datagram to each partner in turn, so that none gets all its datagrams at once.
    bursts = [
        Burst((mine + step) % nranks, range(i, i + 1), _BYTES, asks=True)
        for i in range(_SENT)
        for step in partners
    ]

    def is_whole(place: int, heard: Heard) -> bool:
        return (mine - place) % nranks not in partners or (
            heard.ndistinct == _SENT and heard.nanswers > 0
        )

    result = survey(world, trial, SurveyPlan(_SENT, bursts, is_whole))
    place = {rank: place for place, rank in enumerate(trial.members)}
    return {
        (source, target): heard
        for (source, target), heard in result.heard.items()
        if (place[target] - place[source]) % nranks in partners
    }


def _finding(fault: Fault, world: World, trial: Trial) -> Finding:
    device = trial.devices[world.ranks_of(fault.node)[0]]
    return Finding(
        fault.node,
        "control",
        "unusable" if fault.silent else "degraded",
        fault.words("unicast"),
        f"on {fault.node}: nft list ruleset; UDP must pass between the nodes; "
        f"ethtool -S {device}, and check its cable and port",
        "repeated control messages",
        leave_out=True,
    )


def _partners(nranks: int) -> list[int]:
    """Return the distances of the ranks that a rank asks."""
    if nranks <= _ALL_PAIRS_MAX:
        return list(range(1, nranks))
    powers = [1 << bit for bit in range(nranks.bit_length()) if 1 << bit < nranks]
    return sorted({*powers, *(nranks - power for power in powers)})
