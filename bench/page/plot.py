# SPDX-License-Identifier: BSD-3-Clause
"""The style, curves, axes and files that the pictures of all reports share."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from bench.page.spread import Spread

STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "svg.fonttype": "none",
}
_DOTS_PER_INCH = 130


class Picture(NamedTuple):
    """A picture's file and its caption."""

    path: Path
    caption: str


def save(figure: Figure, path: Path, caption: str) -> Picture:
    """Write a figure to a file; return the picture."""
    figure.savefig(path, dpi=_DOTS_PER_INCH, bbox_inches="tight")
    return Picture(path, caption)


def curve(axes: Any, points: Sequence[tuple[float, Spread]], **look: Any) -> None:
    """Draw medians, each with its spread as an error bar.

    `look` are options of matplotlib's ``errorbar``.
    """
    spreads = [spread for _, spread in points]
    axes.errorbar(
        [at for at, _ in points],
        [each.median for each in spreads],
        yerr=(
            [each.median - each.low for each in spreads],
            [each.high - each.median for each in spreads],
        ),
        **{"markersize": 4, "capsize": 2.5, **look},
    )


def make_y_logarithmic(axes: Any) -> None:
    """Make the y axis logarithmic, with ticks at 1, 2 and 5 of each power of ten."""
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_locator(NullLocator())


def legend(figure: Figure, axes: Any) -> None:
    """Put one panel's legend, which holds for all panels, below them."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="outside lower center", ncols=min(5, len(labels))
    )
