# SPDX-License-Identifier: BSD-3-Clause
"""Draw the pictures of a batch job: curves against nodes, and the nodes' times."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullLocator

from bench.page.plot import (
    STYLE,
    Picture,
    curve,
    legend,
    make_y_logarithmic,
    save,
)
from bench.page.spread import Spread, spread
from bench.page.units import number, size
from bench.scaling.curves import Curves, Openings, Point, efficiency
from bench.scaling.nodes import Node
from bench.scaling.results import CONTENDERS, LIBRARY, OURS, Opening

TITLES = {OURS: "mpimcast", LIBRARY: "MPI library"}
_LOOKS: dict[str, dict[str, Any]] = {
    OURS: {"color": "#c1272d", "marker": "o", "linewidth": 2, "zorder": 3},
    LIBRARY: {"color": "#0000a7", "marker": "s", "linewidth": 1.1, "zorder": 2},
}
_COLUMNS = 4  # of panels in a picture
_NODES_SHOWN = 24

# On the logarithmic axis of nodes, both contenders' points are this factor apart, so
# that their error bars do not hide each other.
_ASIDE = 1.03
# Labels of that axis are at least this factor apart, so that they do not overlap.
_LABELS_APART = 1.3

_AGAINST_NODES = (
    "Against the number of nodes, for each size of a block or of an unsharded model: "
    "the median time of an operation; the bus bandwidth, which is the payload that "
    "every rank's link has to carry, divided by that time; the bytes that a rank "
    "sends, counted with headers for mpimcast, and computed without them for the MPI "
    "library; and the efficiency, which is the bus bandwidth divided by that on the "
    "fewest nodes. Bars reach from the tenth to the ninetieth percentile of all "
    "operations."
)
_BY_NODE = (
    "The time of a node's ranks, divided by the median of the other nodes' in the "
    "same measurement: the median and the extremes of all measurements, slow nodes "
    "first. Outliers are red and precede all others: in at least half of their "
    "measurements they took 1.25 times as long as the others, and far longer than "
    "these differ."
)
_OPENING = (
    "The cost of opening a communicator, on the rank where it is greatest: medians "
    "and extremes of the steps. Messages and bytes are those that the rank sent "
    "through the MPI library. Dotted lines grow with the logarithm of the number of "
    "ranks, and with the number."
)


def draw_sizes(
    title: str, sizes: dict[int, Curves], folder: Path, name: str
) -> Iterator[Picture]:
    """Draw a series, a column for each size, in files whose names begin with `name`."""
    blocks = list(sizes)
    with mpl.rc_context(STYLE):
        for begin in range(0, len(blocks), _COLUMNS):
            some = {each: sizes[each] for each in blocks[begin : begin + _COLUMNS]}
            suffix = f"-{begin // _COLUMNS}" if len(blocks) > _COLUMNS else ""
            caption = _AGAINST_NODES + _note(some)
            figure = _sizes(some)
            figure.suptitle(title, fontsize=10)
            yield save(figure, folder / f"{name}{suffix}.png", caption)


def _note(sizes: dict[int, Curves]) -> str:
    """Return a sentence for the caption if mpimcast left work to the MPI library."""
    ours = [each for contenders in sizes.values() for each in contenders[OURS]]
    if not any(each.by_library for each in ours):
        return ""
    whole = all(each.by_library for each in ours)
    return f" mpimcast left {'all' if whole else 'some'} of these to the MPI library."


# ---- against nodes -----------------------------------------------------------


class _Measure(NamedTuple):
    """The contents of a row of panels: its label, its values, the scale of its axis.

    `of` returns the value at each number of nodes. `scale` sets up the y axis, and is
    given the greatest value.
    """

    label: str
    of: Callable[[Sequence[Point]], list[tuple[int, Spread]]]
    scale: Callable[[Any, float], None]


def _times(points: Sequence[Point]) -> list[tuple[int, Spread]]:
    return [(each.nnodes, _scaled(each.seconds, 1e3)) for each in points]


def _bandwidths(points: Sequence[Point]) -> list[tuple[int, Spread]]:
    return [(each.nnodes, _scaled(each.bandwidth, 1e-6)) for each in points]


def _bytes(points: Sequence[Point]) -> list[tuple[int, Spread]]:
    return [
        (each.nnodes, spread([each.sent_bytes])) for each in points if each.sent_bytes
    ]


def _scaled(each: Spread, factor: float) -> Spread:
    return Spread(*(factor * value for value in each))


def _log_times(axes: Any, _: float) -> None:
    make_y_logarithmic(axes)


def _log_bytes(axes: Any, _: float) -> None:
    axes.set_yscale("log", base=2)
    axes.yaxis.set_major_locator(LogLocator(base=2, numticks=7))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: size(value)))
    axes.yaxis.set_minor_locator(NullLocator())


def _from_zero(axes: Any, most: float) -> None:
    axes.set_ylim(0, 1.05 * most or 1)


def _around_one(axes: Any, most: float) -> None:
    axes.axhline(1, color="#555555", ls=":", lw=1)
    axes.set_ylim(0, 1.05 * max(1, most))


_MEASURES = (
    _Measure("ms", _times, _log_times),
    _Measure("bus bandwidth, MB/s", _bandwidths, _from_zero),
    _Measure("sent by a rank", _bytes, _log_bytes),
    _Measure("efficiency", efficiency, _around_one),
)


def _sizes(sizes: dict[int, Curves]) -> Figure:
    """Draw a column of panels for each size."""
    figure = Figure(
        figsize=(1.6 + 2.7 * len(sizes), 0.8 + 2.1 * len(_MEASURES)),
        layout="constrained",
    )
    panels = figure.subplots(len(_MEASURES), len(sizes), squeeze=False, sharex="col")
    for column, (nbytes, contenders) in enumerate(sizes.items()):
        panels[0, column].set_title(size(nbytes), fontsize=9)
        for axes, measure in zip(panels[:, column], _MEASURES, strict=True):
            _panel(axes, measure, contenders)
        panels[-1, column].set_xlabel("nodes")
    for axes, measure in zip(panels[:, 0], _MEASURES, strict=True):
        axes.set_ylabel(measure.label)
    figure.align_ylabels(panels[:, 0])
    legend(figure, panels[0, 0])
    return figure


def _panel(axes: Any, measure: _Measure, contenders: Curves) -> None:
    """Draw one measure of both contenders against the number of nodes."""
    most = 0.0
    for contender, points in contenders.items():
        found = measure.of(points)
        aside = _ASIDE ** (CONTENDERS.index(contender) - 0.5)
        look = {"label": TITLES[contender], **_LOOKS[contender]}
        curve(axes, [(at * aside, each) for at, each in found], **look)
        most = max([most, *(each.high for _, each in found)])
    measure.scale(axes, most)
    _log_counts(
        axes, {each.nnodes for points in contenders.values() for each in points}
    )


def _log_counts(axes: Any, counts: set[int]) -> None:
    """Make the x axis logarithmic, with labels at as many of the counts as fit."""
    axes.set_xscale("log", base=2)
    shown: list[int] = []
    for count in sorted(counts, reverse=True):
        if not shown or count * _LABELS_APART <= shown[-1]:
            shown.append(count)
    axes.xaxis.set_major_locator(FixedLocator(shown))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlim(min(counts) / 1.2, max(counts) * 1.2)


# ---- nodes -------------------------------------------------------------------


def draw_nodes(nodes: Sequence[Node], folder: Path) -> Picture:
    """Draw how each node's times compare; of many nodes, only the slowest."""
    shown = nodes[:_NODES_SHOWN]
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(7, 1 + 0.22 * len(shown)), layout="constrained")
        axes: Any = figure.subplots()
        for at, node in enumerate(shown):
            colour = "#c1272d" if node.is_outlier else "#555555"
            low, high = node.ratio.low, node.ratio.high
            axes.plot([low, high], [at, at], color=colour, lw=1.1)
            axes.plot(node.ratio.median, at, "o", color=colour, markersize=5)
        axes.axvline(1, color="#555555", ls=":", lw=1)
        axes.set_yticks(range(len(shown)), [node.name for node in shown])
        axes.set_ylim(len(shown) - 0.4, -0.6)
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_locator(LogLocator(base=2, subs=(1, 2**0.5), numticks=9))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: number(value)))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_xlabel("time of its ranks / time of the other nodes' ranks")
        left = len(nodes) - len(shown)
        note = f" {left} faster nodes are not shown." if left else ""
        return save(figure, folder / "nodes.png", _BY_NODE + note)


# ---- opening -----------------------------------------------------------------


class _Cost(NamedTuple):
    """A cost of opening that a panel shows: its label, and how to get it.

    `growth`, if any, says how the cost should grow with the number of ranks; a dotted
    line shows that growth.
    """

    label: str
    of: Callable[[Opening], float]
    growth: Callable[[int], float] | None


_COSTS = (
    _Cost("ms", lambda each: 1e3 * each.seconds, None),
    _Cost("messages sent by a rank", lambda each: each.messages, math.log2),
    _Cost("KB sent by a rank", lambda each: 1e-3 * each.nbytes, lambda n: n - 1),
)


def draw_opening(found: Openings, folder: Path) -> Picture:
    """Draw the costs of opening against the number of ranks."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(9.6, 3), layout="constrained")
        panels = figure.subplots(1, len(_COSTS))
        for axes, cost in zip(panels, _COSTS, strict=True):
            _opening(axes, cost, found)
        legend(figure, panels[0])
        return save(figure, folder / "opening.png", _OPENING)


def _opening(axes: Any, cost: _Cost, found: Openings) -> None:
    """Draw one cost of opening, a curve for each transport."""
    counts = sorted({nranks for _, nranks in found})
    for transport in sorted({each for each, _ in found}):
        points = [
            (nranks, spread([cost.of(each) for each in openings]))
            for (kind, nranks), openings in found.items()
            if kind == transport
        ]
        curve(axes, points, label=transport, marker="o", linewidth=1.5)
    if cost.growth is not None:
        most, (median, *_) = points[-1]
        unit = median / cost.growth(most)
        values = [unit * cost.growth(count) for count in counts]
        axes.plot(counts, values, color="#555555", ls=":", lw=1)
    axes.set_ylim(bottom=0)
    _log_counts(axes, set(counts))
    axes.set_xlabel("ranks")
    axes.set_title(cost.label, fontsize=9)
