# SPDX-License-Identifier: BSD-3-Clause
"""Compute curves against the number of nodes or ranks from a batch job's results."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from bench.page.spread import Spread
from bench.scaling.results import CONTENDERS, Opening, Row, Series, Step


class Point(NamedTuple):
    """The results of all steps on one number of nodes, for one size and contender.

    Attributes
    ----------
    nnodes : int
        The number of nodes.
    seconds : Spread
        The time of an operation: the median of all operations, and the tenth and
        ninetieth percentile.
    bandwidth : Spread
        The bus bandwidth, in bytes a second: the bytes that every rank's link had to
        carry, divided by the time.
    sent_bytes : float
        The bytes that a rank sent in an operation, on average.
    by_library : bool
        Whether mpimcast left some of the operations to the library.
    """

    nnodes: int
    seconds: Spread
    bandwidth: Spread
    sent_bytes: float
    by_library: bool


Curves = dict[str, list[Point]]  # by contender, in the order of nodes
Openings = dict[tuple[str, int], list[Opening]]  # by transport and ranks


def by_series(steps: Iterable[Step]) -> dict[Series, dict[int, Curves]]:
    """Return the curves of all contenders, by series and block size."""
    groups: dict[tuple[Series, int, str, int], list[Row]] = defaultdict(list)
    for step in steps:
        for row in step.rows:
            groups[row.series, row.block_bytes, row.contender, step.nnodes].append(row)
    found: dict[Series, dict[int, Curves]] = {}
    for series, nbytes, contender, nnodes in sorted(groups, key=_order):
        point = _point(nnodes, groups[series, nbytes, contender, nnodes])
        sizes = found.setdefault(series, {}).setdefault(nbytes, {})
        sizes.setdefault(contender, []).append(point)
    return found


def _order(key: tuple[Series, int, str, int]) -> tuple[object, ...]:
    """Return the key by which groups of rows are sorted."""
    series, nbytes, contender, nnodes = key
    return series, nbytes, CONTENDERS.index(contender), nnodes


def _point(nnodes: int, rows: Sequence[Row]) -> Point:
    """Return the point made of the rows of one size, contender and number of nodes."""
    seconds = [second for row in rows for second in row.seconds]
    low, median, high = (float(each) for each in np.quantile(seconds, (0.1, 0.5, 0.9)))
    link_bytes = statistics.fmean(row.link_bytes for row in rows)
    return Point(
        nnodes,
        Spread(median, low, high),
        Spread(link_bytes / median, link_bytes / high, link_bytes / low),
        statistics.fmean(row.sent_bytes for row in rows),
        any(row.by_library for row in rows),
    )


def efficiency(points: Sequence[Point]) -> list[tuple[int, Spread]]:
    """Return the efficiency at each number of nodes.

    It is the bus bandwidth, divided by that on the fewest nodes. So it stays 1 if an
    operation scales. Points without traffic, as on one rank, are left out.
    """
    points = [point for point in points if point.bandwidth.median > 0]
    return [
        (
            point.nnodes,
            Spread(*(each / points[0].bandwidth.median for each in point.bandwidth)),
        )
        for point in points
    ]


def openings(steps: Iterable[Step]) -> Openings:
    """Return what opening a communicator cost, by transport and number of ranks."""
    found: Openings = defaultdict(list)
    for step in steps:
        if step.opening.messages:
            found[step.transport, len(step.nodes)].append(step.opening)
    return dict(sorted(found.items()))
