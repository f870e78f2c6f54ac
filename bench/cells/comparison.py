# SPDX-License-Identifier: BSD-3-Clause
"""Compare mpimcast with the best peer, and with gloo, in numbers and in words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from bench.cells.cells import CELLS
from bench.cells.ratio import Ratio, find, ratio, share, speed
from bench.cells.scenario import Scenario
from bench.cells.summary import OURS, Scenarios, Summaries, Summary
from bench.jobs.contenders import GLOO, OUR_CONTENDERS, TITLES
from bench.page.spread import Spread
from bench.page.units import percent, size

# mpimcast and a peer count as equally fast if their speeds differ by no more than this
# share of the peer's.
_MARGIN = 0.03


class Comparison(NamedTuple):
    """A comparison of mpimcast with the best peer, in one scenario for one block size.

    Attributes
    ----------
    scenario : Scenario
        The scenario.
    ours : Summary
        The results of mpimcast, or of a variant of it.
    peer : Summary
        The results of the best of all peers.
    speed_over_best : Ratio
        mpimcast's speed as a multiple of the best peer's.
    speed_over_untuned : Ratio or None
        mpimcast's speed as a multiple of the best untuned peer's: hand-tuned peers are
        left out. None if no other peer was measured alongside mpimcast.
    gloo : Summary or None
        The results of gloo, or None if it was not measured.
    """

    scenario: Scenario
    ours: Summary
    peer: Summary
    speed_over_best: Ratio
    speed_over_untuned: Ratio | None
    gloo: Summary | None

    @property
    def label(self) -> str:
        """The scenario and the variant of mpimcast in words, without the block size.

        The variant is left out if it is the default.
        """
        variant = (
            "" if self.ours.contender == OURS else f", {TITLES[self.ours.contender]}"
        )
        return f"{self.scenario.cell}. {self.scenario.title()}{variant}"

    @property
    def bytes_share(self) -> float | None:
        """The bytes that mpimcast's busiest host sends, as a share of the peer's."""
        # Each count is in blocks. All blocks of a comparison have the same size, so the
        # ratio of the counts is also the ratio of the bytes.
        return share(self.ours.host_blocks, self.peer.host_blocks)

    @property
    def processor_share(self) -> float | None:
        """The processor time of mpimcast, as a share of the peer's."""
        return share(self.ours.processor_s, self.peer.processor_s)

    @property
    def speed_over_gloo(self) -> Spread | None:
        """The speed of mpimcast as a multiple of gloo's; None if unknown."""
        return speed(self.gloo, self.ours) if self.gloo else None

    @property
    def processor_share_of_gloo(self) -> float | None:
        """The processor time of mpimcast, as a share of gloo's."""
        theirs_s = self.gloo.processor_s if self.gloo else None
        return share(self.ours.processor_s, theirs_s)


def compare(scenarios: Scenarios) -> Iterator[Comparison]:
    """Yield a comparison for each scenario, each variant of mpimcast and each size.

    The sizes of each variant ascend. Without a peer there is no comparison.
    """
    for scenario, contenders in scenarios.items():
        for ours in _of_variants(contenders):
            over_best = ratio(contenders, ours.block_bytes, ours.contender)
            if over_best is None:
                continue
            peer = find(contenders, over_best.peer, ours.block_bytes)
            if peer is None:
                continue
            over_untuned = ratio(
                contenders, ours.block_bytes, ours.contender, tuned=False
            )
            gloo = find(contenders, GLOO, ours.block_bytes)
            yield Comparison(scenario, ours, peer, over_best, over_untuned, gloo)


def _of_variants(contenders: Summaries) -> Iterator[Summary]:
    """Yield the results of all variants of mpimcast."""
    for contender, summaries in contenders.items():
        if contender in OUR_CONTENDERS:
            yield from summaries


def largest(scenarios: Scenarios) -> list[Comparison]:
    """Return, for each label, the comparison with the largest blocks."""
    # The sizes under a label ascend, and the dictionary keeps only the last comparison
    # under each label. So that comparison has the largest blocks.
    return list({each.label: each for each in compare(scenarios)}.values())


# ---- in words ----------------------------------------------------------------


def conclusion(scenarios: Scenarios) -> list[str]:
    """Return lines of text: one on all scenarios together, then one on each cell."""
    compared = largest(scenarios)
    if not compared:
        return ["No peer was measured alongside mpimcast."]
    cells: dict[str, list[Comparison]] = {}
    for each in compared:
        cells.setdefault(each.scenario.cell, []).append(each)
    return [
        " ".join(filter(None, (_count(compared), _shares(compared)))),
        *(f"{name}. {_title(name)}: {_cell(those)}" for name, those in cells.items()),
    ]


def _count(compared: Sequence[Comparison]) -> str:
    """Return a sentence that counts where mpimcast is faster, as fast, and slower.

    The sentence counts comparisons, not scenarios: a scenario has one comparison for
    each variant of mpimcast.
    """
    speeds = [each.speed_over_best.spread.median for each in compared]
    faster = sum(speed > 1 + _MARGIN for speed in speeds)
    slower = sum(speed < 1 - _MARGIN for speed in speeds)
    equal = len(speeds) - faster - slower
    return (
        "With each scenario's largest blocks, mpimcast is faster than the best peer in "
        f"{faster} of {len(speeds)} comparisons, as fast (within "
        f"{100 * _MARGIN:.0f} %) in {equal}, and slower in {slower}."
    )


def _shares(compared: Sequence[Comparison]) -> str:
    """Return a sentence on the bytes sent, or "" if they were not counted anywhere."""
    shares = [each.bytes_share for each in compared if each.bytes_share is not None]
    if not shares:
        return ""
    fewer = sum(share < 1 for share in shares)
    return (
        f"It sends fewer bytes in {fewer} of the {len(shares)} comparisons in which "
        f"bytes were counted: its busiest host sends {_range(shares, percent)} of what "
        "the peer's busiest host sends."
    )


def _cell(compared: Sequence[Comparison]) -> str:
    """Return a sentence on one cell, whose comparisons are given."""
    speeds = [each.speed_over_best.spread.median for each in compared]
    parts = [
        f"mpimcast is {_range(speeds, '{:.2f}'.format)} times as fast as the best peer"
    ]
    bytes_shares = [
        each.bytes_share for each in compared if each.bytes_share is not None
    ]
    if bytes_shares:
        parts.append(f"sends {_range(bytes_shares, percent)} of the peer's bytes")
    time_shares = [
        each.processor_share for each in compared if each.processor_share is not None
    ]
    if time_shares:
        parts.append(
            f"takes {_range(time_shares, percent)} of the peer's processor time"
        )
    blocks = sorted({each.ours.block_bytes for each in compared})
    sizes = " to ".join(dict.fromkeys(map(size, (blocks[0], blocks[-1]))))
    *first, last = parts
    said = f"{', '.join(first)} and {last}" if first else last
    return f"{said} (blocks of {sizes})."


def _range(values: Sequence[float], write: Callable[[float], str]) -> str:
    """Return "LEAST to GREATEST", or one value if both are written alike."""
    return " to ".join(dict.fromkeys((write(min(values)), write(max(values)))))


def _title(cell: str) -> str:
    """Return the title of the cell with this letter, or "Other" if CELLS has none."""
    return CELLS[cell].title if cell in CELLS else "Other"
