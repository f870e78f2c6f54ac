# SPDX-License-Identifier: BSD-3-Clause
"""The ratios of the best peer's time, and of gloo's, to mpimcast's."""

from __future__ import annotations

from typing import NamedTuple

from bench.cells.summary import OURS, Summaries, Summary
from bench.jobs.contenders import PEERS, TUNED
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
    ours = find(contenders, own, nbytes)
    found = [
        each
        for contender in contenders
        if contender in PEERS and (tuned or contender not in TUNED)
        if (each := find(contenders, contender, nbytes))
    ]
    if ours is None or not found:
        return None
    best = min(found, key=lambda each: each.seconds.median)
    over_best = speed(best, ours)
    return Ratio(best.contender, over_best) if over_best else None


def find(contenders: Summaries, contender: str, nbytes: int) -> Summary | None:
    """Return a contender's results for blocks of one size, or None without any."""
    summaries = contenders.get(contender, ())
    return next((each for each in summaries if each.block_bytes == nbytes), None)


def speed(theirs: Summary, ours: Summary) -> Spread | None:
    """Return the ratio of their time to ours, over the rounds that both have.

    Return None if there is no such round.
    """
    both = sorted(set(theirs.rounds) & set(ours.rounds))
    if not both:
        return None
    return spread([theirs.rounds[number] / ours.rounds[number] for number in both])


def share(ours: float | None, theirs: float | None) -> float | None:
    """Return our value as a share of theirs; None if either is None or 0."""
    return ours / theirs if ours and theirs else None
