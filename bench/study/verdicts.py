# SPDX-License-Identifier: BSD-3-Clause
"""What the rule chooses for lossy links, beside what was simulated on them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from bench.page.units import size
from bench.study.case import Results, Table
from bench.study.rule import CODES, REPEAT, Link, expected_ns

_PPM = 10**6
# A choice that takes a greater part longer than the fastest code is off.
_COST_MAX = 0.05
# By name, losses in parts per million.
_LOSS_CLASSES = {"up to 1e-02": range(1, 10_001), "1e-01": range(100_000, 100_001)}
_LINK_HEADS = ["ranks", "size", "Gbit/s", "round trip, ms", "loss"]
_RULE_HEADS = [
    *("round trip, ms", "loss", "cases", "off by 5 %", "surely", "most"),
    "error of the time",
]


def mean_ns(results: Results, link: Link, code: str) -> int:
    """Return the mean time of a code on a link."""
    return results[link.name][f"{code} mean_ns"]


def fastest_code(results: Results, link: Link) -> str:
    """Return the code that has the least mean time on a link."""
    return min(CODES, key=lambda code: mean_ns(results, link, code))


class Verdict(NamedTuple):
    """What the rule chose for a link, and what that costs.

    Attributes
    ----------
    link
        The link.
    chosen, fastest
        The codes with the least expected time, and with the least simulated one.
    cost
        By what part the chosen code took longer than the fastest.
    error
        The standard error of that.
    off
        By what part the time of the chosen code was not the expected one.
    """

    link: Link
    chosen: str
    fastest: str
    cost: float
    error: float
    off: float

    @property
    def words(self) -> list[str]:
        """The cells of a table."""
        link = self.link
        return [
            str(link.nranks),
            size(link.nbytes),
            f"{link.mbits // 1000}",
            f"{link.trip_us / 1000:g}",
            f"{link.loss_ppm / _PPM:.0e}",
            self.chosen,
            self.fastest,
            f"{self.cost:.0%}",
            f"{self.error:.0%}",
        ]


def verdict(results: Results, link: Link) -> Verdict:
    """Have the rule choose for a link, and compare with what was simulated."""
    lossless = link._replace(loss_ppm=0)
    base_ns = mean_ns(results, lossless, REPEAT)
    expected = {name: base_ns + expected_ns(link, code) for name, code in CODES.items()}
    chosen, fastest = min(CODES, key=expected.__getitem__), fastest_code(results, link)
    chosen_ns, least_ns = (mean_ns(results, link, code) for code in (chosen, fastest))
    errors = [
        results[link.name].get(f"{code} error_ns", 0) for code in (chosen, fastest)
    ]
    return Verdict(
        link,
        chosen,
        fastest,
        chosen_ns / least_ns - 1,
        math.hypot(*errors) / least_ns if chosen != fastest else 0.0,
        abs(expected[chosen] / chosen_ns - 1),
    )


def summary(verdicts: Sequence[Verdict]) -> Table:
    """Return how often the rule is off, by round trip and loss."""
    rows = []
    trips_us = sorted({each.link.trip_us for each in verdicts})
    for trip_us, (name, of_loss) in product(trips_us, _LOSS_CLASSES.items()):
        here = [
            each
            for each in verdicts
            if each.link.trip_us == trip_us and each.link.loss_ppm in of_loss
        ]
        costs = [each.cost for each in here]
        surely = sum(each.cost - 2 * each.error > _COST_MAX for each in here)
        rows.append(
            [
                f"{trip_us / 1000:g}",
                name,
                str(len(here)),
                str(sum(cost > _COST_MAX for cost in costs)),
                str(surely),
                f"{max(costs):.0%}",
                f"{np.median([each.off for each in here]):.1%}",
            ]
        )
    return Table(
        "The rule's choices beside the fastest codes: in how many cases its choice "
        "took more than 5 % longer, in how many of these by more than two standard "
        "errors, the most that it cost, and by how much the expected time of the "
        "chosen code is off in the median case.",
        _RULE_HEADS,
        rows,
    )


def misses(verdicts: Sequence[Verdict]) -> Table:
    """Return the cases in which the rule's choice costs more than 5 %."""
    return Table(
        "Where the rule's choice took more than 5 % longer than the fastest code, and "
        "the standard error of that.",
        [*_LINK_HEADS, "chosen", "fastest", "cost", "error"],
        [each.words for each in verdicts if each.cost > _COST_MAX],
    )
