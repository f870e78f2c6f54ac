# SPDX-License-Identifier: BSD-3-Clause
"""The ratio of the best peer's time to mpimcast's."""

from __future__ import annotations

from typing import NamedTuple

from bench.cells.summary import OURS, Summary
from bench.jobs.contenders import OWN
from bench.page.spread import Spread, spread


class Ratio(NamedTuple):
    """The time of the peer, divided by that of mpimcast, over the rounds."""

    peer: str
    spread: Spread


def ratio(
    ways: dict[str, list[Summary]], nbytes: int, own: str = OURS, *, tuned: bool = True
) -> Ratio | None:
    """Return the ratio of way `own` to the peer with the least median, if any."""
    found = {
        way: each
        for way, sizes in ways.items()
        for each in sizes
        if each.block_bytes == nbytes and (tuned or not way.endswith("-tuned"))
    }
    ours = found.get(own)
    found = {way: each for way, each in found.items() if way not in OWN}
    if ours is None or not found:
        return None
    best = min(found.values(), key=lambda each: each.seconds.median)
    both = sorted(set(best.rounds) & set(ours.rounds))
    if not both:
        return None
    ratios = [best.rounds[number] / ours.rounds[number] for number in both]
    return Ratio(best.way, spread(ratios))
