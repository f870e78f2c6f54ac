# SPDX-License-Identifier: BSD-3-Clause
"""Pictures of a comparison: times of ranks, bytes, queues, loads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from mpimcast.cli.sim.figures import PERCENTILES, class_depths, row

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mpimcast.cli.sim.comparison import Comparison

_US, _MB, _KB = 1e3, 1e6, 1e3


def draw(comparison: Comparison, path: str) -> None:
    """Draw a comparison into a file, whose ending says its format.

    The same comparison gives the same file with the same version of matplotlib.

    Raises
    ------
    OSError
        If it cannot be written.
    """
    figure = Figure(figsize=(16, 9), layout="constrained")
    (ends, times, nbytes), (queues, loads, repairs) = figure.subplots(2, 3)
    contestants = comparison.contestants
    rows = [row(each, comparison) for each in contestants]
    names = [each["name"] for each in rows]
    _draw_ends(ends, comparison)
    percentiles = [{name: each[name] for name in PERCENTILES} for each in rows]
    _group(times, names, percentiles, _US)
    times.axhline(comparison.bound_ns / _US, color="k", linestyle=":")
    times.set(title="times of ranks, and the bound", ylabel="us", yscale="log")
    _stack(nbytes, names, [each["class_bytes"] for each in rows], _MB)
    nbytes.set(title="bytes by class of link", ylabel="MB over all links")
    depths = [class_depths(each, comparison.ground) for each in contestants]
    _group(queues, names, depths, _KB)
    queues.set(title="deepest queue by class of link", ylabel="KB")
    _bars(loads, names, [each["most_loaded"]["load"] for each in rows])
    loads.set(title="most loaded link", ylabel="part of the time that it is busy")
    _bars(repairs, names, [each["repair_bytes"] / _MB for each in rows])
    repairs.set(title="repairs", ylabel="MB over all links")
    with mpl.rc_context({"svg.hashsalt": "mpimcast"}):
        metadata = {"Date": None} if path.lower().endswith(".svg") else None
        figure.savefig(path, metadata=metadata)


def _draw_ends(axes: Any, comparison: Comparison) -> None:
    """Draw which part of the ranks had ended at which time."""
    for contestant in comparison.contestants:
        ends = np.sort(np.concatenate([run.ends_ns for run in contestant.runs]))
        part = np.arange(1, len(ends) + 1) / len(ends)
        axes.step(ends / _US, part, where="post", label=contestant.name)
    bound_us = comparison.bound_ns / _US
    axes.axvline(bound_us, color="k", linestyle=":", label="bound")
    axes.set(
        title="ends of ranks", xlabel="us", ylabel="part of the ranks", xscale="log"
    )
    axes.legend()


def _stack(
    axes: Any, names: Sequence[str], sums: Sequence[Mapping[str, int]], unit: float
) -> None:
    """Draw a bar for each name, of a part for each class."""
    places, base = np.arange(len(names)), np.zeros(len(names))
    for kind in sums[0]:
        heights = np.array([each[kind] for each in sums]) / unit
        axes.bar(places, heights, bottom=base, label=kind)
        base += heights
    axes.set_xticks(places, names, rotation=30, ha="right")
    axes.legend()


def _group(
    axes: Any, names: Sequence[str], values: Sequence[Mapping[str, int]], unit: float
) -> None:
    """Draw bars beside each other for each name, one for each key of the values."""
    keys = list(values[0])
    width = 0.8 / len(keys)
    for number, key in enumerate(keys):
        places = np.arange(len(names)) + (number + 0.5) * width - 0.4
        label = key.removesuffix("_ns")
        axes.bar(places, [each[key] / unit for each in values], width, label=label)
    axes.set_xticks(np.arange(len(names)), names, rotation=30, ha="right")
    axes.legend()


def _bars(axes: Any, names: Sequence[str], values: Sequence[float]) -> None:
    """Draw a bar for each name."""
    axes.bar(np.arange(len(names)), values)
    axes.set_xticks(np.arange(len(names)), names, rotation=30, ha="right")
