# SPDX-License-Identifier: BSD-3-Clause
"""The pictures of the scale study."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bench.page.plot import STYLE, Picture, legend, make_y_logarithmic, save
from bench.study.case import Results

_OURS = "multicast"


def _lines(
    axes: Axes, at: Sequence[float], curves: Mapping[str, Sequence[float]]
) -> None:
    """Draw curves over a logarithmic axis; ours stands out."""
    for name, values in curves.items():
        ours = name.startswith(_OURS)
        axes.plot(
            at,
            values,
            "o-" if ours else "s--",
            markersize=4,
            linewidth=2 if ours else 1,
            label=name,
        )
    axes.set_xscale("log", base=2)
    axes.set_xticks(at, [f"{each:g}" for each in at], rotation=45)


def _figure(npanels: int) -> tuple[Figure, Sequence[Axes]]:
    figure = Figure(figsize=(4.5 * npanels, 3.6), layout="constrained")
    return figure, figure.subplots(1, npanels, squeeze=False)[0]


def traffic(results: Results, names: Sequence[str], folder: Path) -> Picture:
    """Draw the crossings of links by number of ranks."""
    trees = {
        int(key.split()[1]): found for key, found in results.items() if "tree" in key
    }
    with rc_context(STYLE):
        figure, (axes,) = _figure(1)
        _lines(
            axes,
            list(trees),
            {
                name: [found[name] / nranks for nranks, found in trees.items()]
                for name in (_OURS, *names)
            },
        )
        make_y_logarithmic(axes)
        axes.set_xlabel("ranks")
        axes.set_ylabel("links that a block crosses")
        legend(figure, axes)
        return save(
            figure,
            folder / "traffic.png",
            "Traffic of Allgathers on a fat tree of switches with 32 ports.",
        )


def times(
    results: Results,
    nranks: int,
    sizes: Sequence[int],
    names: Sequence[str],
    folder: Path,
) -> Picture:
    """Draw the time by size of block, divided by the bound."""
    from bench.study.site import bound_ns

    with rc_context(STYLE):
        figure, (axes,) = _figure(1)
        curves = {
            name: [
                results[f"{name} {size}"]["time_ns"] / bound_ns(nranks, size)
                for size in sizes
            ]
            for name in names
        }
        _lines(axes, [size / 1024 for size in sizes], curves)
        make_y_logarithmic(axes)
        axes.axhline(1, color="black", linewidth=0.8)
        axes.set_xlabel("block, KiB")
        axes.set_ylabel("time / bound")
        legend(figure, axes)
        return save(
            figure, folder / "times.png", f"Time of an Allgather at {nranks} nodes."
        )


def overlap(rows: Sequence[Sequence[str]], folder: Path) -> Picture:
    """Draw what is gained over two rings, from the rows of the table."""
    nranks = [int(row[0]) for row in rows]
    with rc_context(STYLE):
        figure, (axes,) = _figure(1)
        _lines(
            axes,
            nranks,
            {
                "multicast and switches": [float(row[6]) for row in rows],
                "multicast and ring": [float(row[5]) for row in rows],
                "most, 2 - 2 / P": [float(row[7]) for row in rows],
            },
        )
        axes.set_xlabel("ranks")
        axes.set_ylabel("gain over two rings")
        legend(figure, axes)
        return save(
            figure,
            folder / "overlap.png",
            "Allgather beside Reduce-Scatter, both done.",
        )


def losses(
    tails: Mapping[str, Sequence[Sequence[float]]],
    probabilities: Sequence[float],
    folder: Path,
) -> Picture:
    """Draw median and tail against the loss of every link, a panel a policy."""
    with rc_context(STYLE):
        figure, panels = _figure(len(tails))
        for axes, (repair, rows) in zip(panels, tails.items(), strict=True):
            for place, name in enumerate(("p50", "p99", "p99.9")):
                axes.plot(
                    probabilities,
                    [row[place] / 1000 for row in rows],
                    "o-",
                    markersize=4,
                    label=name,
                )
            axes.set_xscale("log")
            axes.set_xlabel("loss of each link")
            axes.set_title(repair)
        panels[0].set_ylabel("time of ranks, us")
        legend(figure, panels[0])
        return save(figure, folder / "losses.png", "Ranks' times by policy of repair.")


def broadcasts(
    results: Results,
    sizes: Sequence[int],
    nranks: Sequence[int],
    names: Sequence[str],
    folder: Path,
) -> Picture:
    """Draw the time against the number of ranks, a panel a size."""
    with rc_context(STYLE):
        figure, panels = _figure(len(sizes))
        for axes, size in zip(panels, sizes, strict=True):
            curves = {
                name: [
                    results[f"{name}, {size}, {each}"]["time_ns"] / 1000
                    for each in nranks
                ]
                for name in names
            }
            _lines(axes, nranks, curves)
            make_y_logarithmic(axes)
            axes.set_title(f"{size} bytes")
            axes.set_xlabel("ranks")
        panels[0].set_ylabel("time, us")
        legend(figure, panels[0])
        return save(figure, folder / "broadcasts.png", "Broadcasts on a Clos network.")


def codes(
    panels: Mapping[str, Mapping[str, Sequence[tuple[float, float]]]],
    probabilities: Sequence[float],
    folder: Path,
) -> Picture:
    """Draw simulated and expected times in ms against the loss, a panel a title."""
    with rc_context(STYLE):
        figure, all_axes = _figure(len(panels))
        for axes, (title, curves) in zip(all_axes, panels.items(), strict=True):
            for name, times in curves.items():
                simulated, expected = zip(*times, strict=True)
                (line,) = axes.plot(
                    probabilities, simulated, "o-", markersize=4, label=name
                )
                axes.plot(probabilities, expected, "--", color=line.get_color())
            axes.set_xscale("log")
            axes.set_xlabel("loss")
            make_y_logarithmic(axes)
            axes.set_title(title)
        all_axes[0].set_ylabel("time, ms")
        legend(figure, all_axes[0])
        return save(
            figure,
            folder / "codes.png",
            "The time of 1 MiB at 1 Gbit/s and a round trip of 25 ms: simulated, and "
            "dashed as the rule expects it.",
        )
