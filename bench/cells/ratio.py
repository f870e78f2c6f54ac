# SPDX-License-Identifier: BSD-3-Clause
"""The ratio of the best peer's time to mpimcast's."""

from __future__ import annotations

from typing import NamedTuple

from bench.cells.summary import OURS, Summaries
from bench.jobs.contenders import OUR_CONTENDERS, TUNED
from bench.page.spread import Spread, spread


class Ratio(NamedTuple):
    """A peer, and its time divided by mpimcast's: the spread over the rounds."""

    peer: str
    spread: Spread


def ratio(
    contenders: Summaries, nbytes: int, own: str = OURS, *, tuned: bool = True
) -> Ratio | None:
    """Return the ratio of the best peer's time to that of `own`, if both are known.

    The best peer is the one with the least median over all rounds. Without `tuned`,
    peers that are tuned by hand do not count.
    """
    found = {
        contender: each
        for contender, sizes in contenders.items()
        for each in sizes
        if each.block_bytes == nbytes and (tuned or contender not in TUNED)
    }
    ours = found.get(own)
    found = {
        contender: each
        for contender, each in found.items()
        if contender not in OUR_CONTENDERS
    }
    if ours is None or not found:
        return None
    best = min(found.values(), key=lambda each: each.seconds.median)
    both = sorted(set(best.rounds) & set(ours.rounds))
    if not both:
        return None
    ratios = [best.rounds[number] / ours.rounds[number] for number in both]
    return Ratio(best.contender, spread(ratios))
