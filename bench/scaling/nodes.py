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

# A node is an outlier of a measurement if its time exceeds the median of the other
# nodes by both this factor and this many of their median absolute deviations.
_OUTLIER_RATIO = 1.25
_OUTLIER_DEVIATIONS = 5
# A node is an outlier of the job if it is one in this part of its measurements.
_OUTLIER_PART = 0.5
_NODES_MIN = 3


class Node(NamedTuple):
    """The time of a node's ranks, divided by the median of the other nodes' times.

    Attributes
    ----------
    ratio : Spread
        The ratios in all the node's measurements, of steps on at least three nodes.
    slow : int
        The number of measurements in which the node was an outlier.
    """

    name: str
    ratio: Spread
    slow: int
    measurements: int

    @property
    def is_outlier(self) -> bool:
        """Whether the node is an outlier too often for that to be chance."""
        return self.slow >= _OUTLIER_PART * self.measurements


def compare(steps: Iterable[Step]) -> list[Node]:
    """Return all nodes, outliers first, then by how slow they are."""
    found: dict[str, list[tuple[float, bool]]] = defaultdict(list)
    for step in steps:
        for row in step.rows if step.nnodes >= _NODES_MIN else ():
            for name, ratio, slow in _ratios(step.nodes, row.rank_seconds):
                found[name].append((ratio, slow))
    compared = []
    for name, each in found.items():
        ratios = [ratio for ratio, _ in each]
        slow = sum(slow for _, slow in each)
        compared.append(Node(name, spread(ratios), slow, len(each)))
    return sorted(
        compared, key=lambda node: (not node.is_outlier, -node.ratio.median, node.name)
    )


def _ratios(
    nodes: Sequence[str], rank_seconds: Sequence[float]
) -> Iterable[tuple[str, float, bool]]:
    """Yield each node, its median by that of others, and whether it is an outlier."""
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
