# SPDX-License-Identifier: BSD-3-Clause
"""Results of a batch job made into numbers against nodes.

A line of its ``results.jsonl`` is what ``python -m mpimcast bench --json`` wrote of a
step, and which step it was. Lines that are cut off, or no results, are named and left
out.
"""

from __future__ import annotations

import json
import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bench.summary import OURS, Spread

RESULTS = "results.jsonl"
LIBRARY = "mpi"
WAYS = (OURS, LIBRARY)

# A node is an outlier of a measurement if its ranks take so many times as long as the
# median of the others, and lie so many times the others' own deviation above it.
_OUTLIER_RATIO = 1.25
_OUTLIER_DEVIATIONS = 5
# And one of the job if it is in this part of its measurements.
_OUTLIER_PART = 0.25
_NODES_MIN = 3


class Setting(NamedTuple):
    """What is compared: sizes and ways of one setting share a picture."""

    collective: str
    transport: str
    ranks_per_node: int
    order: str

    def title(self) -> str:
        """Return what a heading says."""
        count = self.ranks_per_node
        ranks = f"{count} rank{'' if count == 1 else 's'} a node"
        return f"{self.collective}, {self.transport}, {ranks}, {self.order} order"


@dataclass(frozen=True)
class Row:
    """What a step found of one size and one way.

    Attributes
    ----------
    seconds : tuple of float
        Each operation's time.
    rank_seconds : tuple of float
        Each rank's own median time.
    link_bytes : float
        What every rank's link has to carry in an operation.
    sent_bytes : float
        What a rank sent in one, on average; computed if it is the library's.
    """

    setting: Setting
    way: str
    block_bytes: int
    seconds: tuple[float, ...]
    rank_seconds: tuple[float, ...]
    link_bytes: float
    sent_bytes: float
    by_library: bool
    wrong_bytes: int


class Opening(NamedTuple):
    """What opening a communicator took, of each the most on any rank."""

    seconds: float
    messages: int
    nbytes: int


@dataclass(frozen=True)
class Step:
    """A line.

    Attributes
    ----------
    nodes : tuple of str
        Each rank's.
    """

    name: str
    transport: str
    nodes: tuple[str, ...]
    begin: str
    library: str
    opening: Opening
    rows: tuple[Row, ...]

    @property
    def nnodes(self) -> int:
        """Return how many nodes it ran on."""
        return len(set(self.nodes))


# ---- reading -----------------------------------------------------------------


def read(path: Path) -> tuple[list[Step], list[str]]:
    """Return the steps of a file, and what is to be said of its other lines."""
    steps, notes = [], []
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                step = _step(json.loads(line))
            except _NOT_RESULTS as error:
                cut = "" if line.endswith(b"\n") else "cut off, "
                what = f"{type(error).__name__}: {str(error)[:80]}"
                notes.append(f"line {number} is left out: {cut}no results ({what})")
            else:
                steps.append(step)
    return steps, notes


# What the wrong types, lengths and numbers in a line, or no JSON at all, end in.
_NOT_RESULTS = (
    *(ValueError, TypeError, KeyError, AttributeError),
    *(OverflowError, RecursionError),
)


def _step(found: dict[str, Any]) -> Step:
    """Return the step of a line; raise one of _NOT_RESULTS if it is none."""
    step, opening = found["step"], found["opening"]
    nodes = tuple(map(str, found["hosts"]))
    if not nodes or len(nodes) != found["ranks"]:
        raise ValueError(f"{len(nodes)} nodes are named for {found['ranks']} ranks")
    if len(set(nodes)) != int(step["nodes"]):
        raise ValueError(f"{step['nodes']} nodes were wanted, {len(set(nodes))} ran")
    transport = str(step["transport"])
    rows = []
    for measured in found["measured"]:
        setting = Setting(
            str(measured["collective"]),
            transport,
            int(step["ranks_per_node"]),
            str(step["order"]),
        )
        rows += [_row(setting, way, measured, len(nodes)) for way in WAYS]
    return Step(
        name=str(step["name"]),
        transport=transport,
        nodes=nodes,
        begin=str(found["begin"]),
        library=str(found["versions"]["mpi"]),
        opening=Opening(
            _finite(opening["seconds"]), int(opening["messages"]), int(opening["bytes"])
        ),
        rows=tuple(rows),
    )


def _row(setting: Setting, way: str, measured: dict[str, Any], nranks: int) -> Row:
    found = measured[way]
    seconds = tuple(map(_positive, found["seconds"]))
    rank_seconds = tuple(map(_positive, found["rank_seconds"]))
    if not seconds or len(rank_seconds) != nranks:
        raise ValueError(f"times of {len(rank_seconds)} ranks, {len(seconds)} in all")
    link_part = _finite(found["busbw_bytes_per_s"]) / _positive(
        found["algbw_bytes_per_s"]
    )
    return Row(
        setting=setting,
        way=way,
        block_bytes=int(_positive(measured["block_bytes"])),
        seconds=seconds,
        rank_seconds=rank_seconds,
        link_bytes=_positive(measured["total_bytes"]) * link_part,
        sent_bytes=_finite(found["sent_bytes_per_rank"]),
        by_library=way == OURS and measured["path"] == LIBRARY,
        wrong_bytes=int(found["wrong_bytes"]),
    )


def _finite(value: object) -> float:
    if not isinstance(value, (int, float)) or not 0 <= float(value) < math.inf:
        raise ValueError(f"{value!r} is no such number")
    return float(value)


def _positive(value: object) -> float:
    if not _finite(value):
        raise ValueError("a zero")
    return _finite(value)


# ---- against nodes -----------------------------------------------------------


class Point(NamedTuple):
    """What all steps on one number of nodes found of one size and way.

    Attributes
    ----------
    seconds : Spread
        The median of all operations, and the tenth and ninetieth percentile.
    bandwidth : Spread
        What every rank's link had to carry, by the time, in bytes a second.
    by_library : bool
        Whether ours was left to the library.
    """

    nnodes: int
    seconds: Spread
    bandwidth: Spread
    sent_bytes: float
    by_library: bool


Curves = dict[str, list[Point]]  # by way, in the order of nodes
Openings = dict[tuple[str, int], list[Opening]]  # by transport and ranks


def curves(steps: Iterable[Step]) -> dict[Setting, dict[int, Curves]]:
    """Return what was found by setting and size."""
    groups: dict[tuple[Setting, int, str, int], list[Row]] = defaultdict(list)
    for step in steps:
        for row in step.rows:
            groups[row.setting, row.block_bytes, row.way, step.nnodes].append(row)
    found: dict[Setting, dict[int, Curves]] = {}
    for setting, nbytes, way, nnodes in sorted(groups, key=_order):
        point = _point(nnodes, groups[setting, nbytes, way, nnodes])
        sizes = found.setdefault(setting, {}).setdefault(nbytes, {})
        sizes.setdefault(way, []).append(point)
    return found


def _order(key: tuple[Setting, int, str, int]) -> tuple[object, ...]:
    setting, nbytes, way, nnodes = key
    return setting, nbytes, WAYS.index(way), nnodes


def _point(nnodes: int, rows: Sequence[Row]) -> Point:
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
    """Return bus bandwidths by that on the fewest nodes whose links carry anything.

    Of an operation that scales it stays 1.
    """
    carry = [point for point in points if point.bandwidth.median > 0]
    return [
        (
            point.nnodes,
            Spread(*(each / carry[0].bandwidth.median for each in point.bandwidth)),
        )
        for point in carry
    ]


def openings(steps: Iterable[Step]) -> Openings:
    """Return what opening took by transport and number of ranks."""
    found: Openings = defaultdict(list)
    for step in steps:
        if step.opening.messages:
            found[step.transport, len(step.nodes)].append(step.opening)
    return dict(sorted(found.items()))


# ---- nodes -------------------------------------------------------------------


class Node(NamedTuple):
    """How long the ranks of a node took, by the median of the other nodes'.

    Attributes
    ----------
    ratio : Spread
        Of all its measurements, on at least three nodes.
    slow : int
        In how many of them it was an outlier.
    """

    name: str
    ratio: Spread
    slow: int
    measurements: int

    @property
    def is_outlier(self) -> bool:
        """Return whether it is one too often for chance."""
        return self.slow >= _OUTLIER_PART * self.measurements


def nodes(steps: Iterable[Step]) -> list[Node]:
    """Return all nodes, outliers first, then by how slow they are."""
    found: dict[str, list[tuple[float, bool]]] = defaultdict(list)
    for step in steps:
        for row in step.rows if step.nnodes >= _NODES_MIN else ():
            for name, ratio, slow in _compare(step.nodes, row.rank_seconds):
                found[name].append((ratio, slow))
    compared = []
    for name, each in found.items():
        ratios = [ratio for ratio, _ in each]
        spread = Spread(statistics.median(ratios), min(ratios), max(ratios))
        slow = sum(slow for _, slow in each)
        compared.append(Node(name, spread, slow, len(each)))
    return sorted(
        compared, key=lambda node: (not node.is_outlier, -node.ratio.median, node.name)
    )


def _compare(
    nodes: Sequence[str], rank_seconds: Sequence[float]
) -> Iterable[tuple[str, float, bool]]:
    """Yield each node, its median by that of the others', whether it is an outlier."""
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
