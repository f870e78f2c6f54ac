# SPDX-License-Identifier: BSD-3-Clause
"""Compare the nodes of a batch job, and find the outliers among them."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from bench.page.spread import Spread, spread
from bench.scaling.results import Step

# A node is an outlier in a measurement if its time exceeds the median of the other
# nodes' times by this factor, and also by this many median absolute deviations of
# those times.
_OUTLIER_RATIO = 1.25
_OUTLIER_DEVIATIONS = 5
# A node is an outlier of the job if it is one in this share of its measurements.
_OUTLIER_SHARE = 0.5
# On fewer nodes nobody can tell which of them is the outlier.
_NODES_MIN = 3


class Node(NamedTuple):
    """How the times of a node's ranks compare with those of the other nodes.

    Attributes
    ----------
    name : str
        The node's name.
    ratio : Spread
        In each measurement, the median time of the node's ranks, divided by the median
        of the other nodes' times; the spread of these ratios.
    nslow : int
        The number of measurements in which the node was an outlier.
    nmeasurements : int
        The number of the node's measurements in steps on at least three nodes.
    """

    name: str
    ratio: Spread
    nslow: int
    nmeasurements: int

    @property
    def is_outlier(self) -> bool:
        """Whether the node was an outlier too often for that to be chance."""
        return self.nslow >= _OUTLIER_SHARE * self.nmeasurements


def compare(steps: Iterable[Step]) -> list[Node]:
    """Return all nodes: first the outliers, then the others, each slowest first."""
    found: dict[str, list[tuple[float, bool]]] = defaultdict(list)
    for step in steps:
        for row in step.rows if step.nnodes >= _NODES_MIN else ():
            for name, ratio, is_slow in _ratios(step.nodes, row.rank_seconds):
                found[name].append((ratio, is_slow))
    compared = []
    for name, each in found.items():
        ratios = [ratio for ratio, _ in each]
        nslow = sum(is_slow for _, is_slow in each)
        compared.append(Node(name, spread(ratios), nslow, len(each)))
    return sorted(
        compared, key=lambda node: (not node.is_outlier, -node.ratio.median, node.name)
    )


def _ratios(
    nodes: Sequence[str], rank_seconds: Sequence[float]
) -> Iterable[tuple[str, float, bool]]:
    """Yield each node's name, its ratio in a measurement, and whether it is an outlier.

    The ratio is its ranks' median time, divided by the median of the other nodes'
    times.
    """
    ranks: dict[str, list[float]] = defaultdict(list)
    for name, seconds in zip(nodes, rank_seconds, strict=True):
        ranks[name].append(seconds)
    medians = {name: statistics.median(each) for name, each in ranks.items()}
    for name, median in medians.items():
        others = np.array([each for key, each in medians.items() if key != name])
        usual = float(np.median(others))
        deviation = float(np.median(np.abs(others - usual)))
        far = median - usual > _OUTLIER_DEVIATIONS * deviation
        yield name, median / usual, far and median > _OUTLIER_RATIO * usual
