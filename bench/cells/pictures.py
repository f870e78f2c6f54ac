# SPDX-License-Identifier: BSD-3-Clause
"""Draw the pictures of a report on cells: curves of time, and bars of costs."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from bench.cells.scenario import Scenario
from bench.cells.summary import OURS, Scenarios, Summaries, Summary
from bench.jobs.contenders import BARE, GLOO, TITLES, TUNED
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

# Each library has one colour; its curves are dashed where it is tuned by hand.
_COLOURS = {
    OURS: "#c1272d",
    "mpimcast-mpich": "#e08214",
    "mpimcast-shared": "#e08214",
    "mpimcast-default": "#c1272d",
    "mpimcast-authenticate": "#e08214",
    "mpimcast-encrypt": "#7b3294",
    "mpich": "#0000a7",
    "mpich-tuned": "#0000a7",
    "openmpi": "#008176",
    "openmpi-han": "#5aa02c",
    "openmpi-tuned": "#008176",
    GLOO: "#8b5a2b",
    BARE: "#777777",
}
_MARKS = {
    OURS: "o",
    "mpich": "s",
    "mpich-tuned": "D",
    "openmpi": "^",
    GLOO: "P",
    BARE: "x",
}
# Each contender's points lie to the right of the previous contender's by this factor,
# so that error bars do not hide each other.
_ASIDE = 1.035


def draw(scenarios: Scenarios, folder: Path, name: str) -> Iterator[Picture]:
    """Draw the results of one cell, in files whose names begin with `name`."""
    with mpl.rc_context(STYLE):
        sweep = {each.network.loss for each in scenarios} != {0.0}
        if sweep:
            yield save(_loss(scenarios), folder / f"{name}-loss.png", _LOSS)
        groups: dict[str, Scenarios] = {}
        for scenario, contenders in scenarios.items():
            if not scenario.network.loss:
                groups.setdefault(scenario.collective, {})[scenario] = contenders
        for collective, group in groups.items():
            stem = f"{name}-{collective}".lower().replace("+", "-")
            if any(
                len(sizes) > 1
                for contenders in group.values()
                for sizes in contenders.values()
            ):
                path = folder / f"{stem}-time.png"
                yield save(_curves(group), path, _TIME + _note(group))
            if all(_largest(contenders) for contenders in group.values()):
                costs = list(_costs(group))
                shown = "; ".join(cost.caption for cost in costs)
                caption = f"With the largest blocks, from top to bottom: {shown}."
                figure = _bars(group, costs)
                path = folder / f"{stem}-costs.png"
                yield save(figure, path, caption + _note(group))


def _note(scenarios: Scenarios) -> str:
    """Return a sentence for the caption if mpimcast left work to the MPI library."""
    ours = [
        each for contenders in scenarios.values() for each in contenders.get(OURS, ())
    ]
    if not any(each.by_library for each in ours):
        return ""
    whole = all(each.by_library for each in ours)
    return f" mpimcast left {'all' if whole else 'some'} of these to the MPI library."


_TIME = (
    "Medians of the rounds; bars reach from the fastest round to the slowest. Bus "
    "bandwidth is the payload that each link has to carry, divided by the time. The "
    "dotted line is the link's rate. Small blocks may exceed it, since an idle link "
    "passes a burst at once."
)
_LOSS = (
    "Each contender's time, divided by its own without loss: the median and the "
    "extremes of the rounds. Every switch port drops single datagrams of mpimcast, "
    "and single segments of the others' TCP."
)


class _Cost(NamedTuple):
    """A cost that bars show: its label, its caption, and how to get its value."""

    label: str
    caption: str
    of: Callable[[Summary], float]


_DURATION = _Cost(
    "ms",
    "the time of an operation",
    lambda each: 1e3 * each.seconds.median,
)
_PROCESSORS = _Cost(
    "ms of processor time",
    "the processor time of all ranks together (the MPI libraries poll; gloo sleeps)",
    lambda each: 1e3 * (each.processor_s or 0.0),
)
_BYTES = _Cost(
    "blocks sent by a host",
    "the blocks that the busiest host sent, with frame headers and barriers",
    lambda each: each.host_blocks or 0.0,
)
_TRUNK = _Cost(
    "blocks over the trunk",
    "the blocks that the trunk carried in its busier direction",
    lambda each: each.trunk_blocks or 0.0,
)


# ---- curves ------------------------------------------------------------------


def _curves(scenarios: Scenarios) -> Figure:
    """Draw time and bus bandwidth against size, a column for each scenario."""
    figure = Figure(figsize=(1.2 + 3.4 * len(scenarios), 5.6), layout="constrained")
    axes = figure.subplots(2, len(scenarios), squeeze=False, sharex="col")
    for column, (scenario, contenders) in enumerate(scenarios.items()):
        above, below = axes[:, column]
        above.set_title(textwrap.fill(scenario.title(), 44), fontsize=9)
        for contender, sizes in contenders.items():
            _curve(above, contender, sizes, lambda each: _scaled(each.seconds, 1e3))
            _curve(
                below, contender, sizes, lambda each, at=scenario: _bandwidth(at, each)
            )
        found = {each.block_bytes for sizes in contenders.values() for each in sizes}
        _log_sizes(above, found)
        _log_sizes(below, found)
        make_y_logarithmic(above)
        # With two switches the trunk is the limit, not the rate of a single link.
        rate_mbit = (
            scenario.network.rate_mbit if scenario.network.switches == 1 else None
        )
        if rate_mbit is not None:
            below.axhline(rate_mbit / 8, color="#555555", ls=":", lw=1)
        medians = [
            _bandwidth(scenario, s).median for each in contenders.values() for s in each
        ]
        below.set_ylim(0, 1.25 * max([*medians, (rate_mbit or 0) / 8]))
        below.set_xlabel("bytes of a block")
    axes[0, 0].set_ylabel("ms")
    axes[1, 0].set_ylabel("bus bandwidth, MB/s")
    legend(figure, axes[0, 0])
    return figure


def _curve(
    axes: Any, contender: str, sizes: Sequence[Summary], of: Callable[[Summary], Spread]
) -> None:
    """Draw a contender's values against the block size."""
    aside = _ASIDE ** list(TITLES).index(contender)
    _line(axes, contender, [(each.block_bytes * aside, of(each)) for each in sizes])


def _scaled(spread: Spread, factor: float) -> Spread:
    return Spread(*(each * factor for each in spread))


def _bandwidth(scenario: Scenario, each: Summary) -> Spread:
    """Return the bus bandwidth, in MB/s."""
    nbytes = scenario.payload_bytes(each.block_bytes) / 1e6
    seconds = each.seconds
    return Spread(nbytes / seconds.median, nbytes / seconds.high, nbytes / seconds.low)


def _line(axes: Any, contender: str, points: Sequence[tuple[float, Spread]]) -> None:
    """Draw a contender's medians, each with its spread, in the contender's style."""
    curve(
        axes,
        points,
        label=TITLES.get(contender, contender),
        color=_COLOURS.get(contender, "#000000"),
        linestyle="--" if contender in TUNED else "-",
        linewidth=2 if contender == OURS else 1.1,
        marker=_MARKS.get(contender, "v"),
        zorder=3 if contender == OURS else 2,
    )


def _log_sizes(axes: Any, sizes: set[int]) -> None:
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_locator(FixedLocator(sorted(sizes)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: size(value)))
    axes.xaxis.set_minor_locator(NullLocator())


# ---- loss --------------------------------------------------------------------


def _loss(scenarios: Scenarios) -> Figure:
    """Draw each contender's time, divided by its own without loss, against loss."""
    collectives = sorted({each.collective for each in scenarios})
    figure = Figure(figsize=(1.2 + 4 * len(collectives), 3.4), layout="constrained")
    axes = figure.subplots(1, len(collectives), squeeze=False)[0]
    for column, collective in enumerate(collectives):
        group = {
            scenario: contenders
            for scenario, contenders in scenarios.items()
            if scenario.collective == collective
        }
        clean = next(
            contenders
            for scenario, contenders in group.items()
            if not scenario.network.loss
        )
        for contender, (without, *_) in clean.items():
            points = [
                (
                    100 * scenario.network.loss,
                    _by_round(contenders[contender][0], without),
                )
                for scenario, contenders in group.items()
                if contender in contenders
            ]
            _line(axes[column], contender, points)
        nranks = next(iter(group)).nranks
        nbytes = size(next(iter(clean.values()))[0].block_bytes)
        axes[column].set_title(f"{collective}, P = {nranks}, {nbytes}", fontsize=9)
        axes[column].set_xlabel("lost at every port, %")
    axes[0].set_ylabel("time / time without loss")
    legend(figure, axes[0])
    return figure


def _by_round(lossy: Summary, without: Summary) -> Spread:
    """Return the spread of the ratio of the times over the rounds that both have."""
    both = set(lossy.rounds) & set(without.rounds)
    return spread([lossy.rounds[each] / without.rounds[each] for each in both])


# ---- bars --------------------------------------------------------------------


def _largest(contenders: Summaries) -> list[Summary]:
    """Return each contender's results for the largest size that all of them have."""
    common = set.intersection(
        *({each.block_bytes for each in sizes} for sizes in contenders.values())
    )
    if not common:
        return []
    return [
        each
        for sizes in contenders.values()
        for each in sizes
        if each.block_bytes == max(common)
    ]


def _costs(scenarios: Scenarios) -> Iterator[_Cost]:
    """Yield the costs that were measured in these scenarios."""
    yield _DURATION
    if all(each.network.kind != "verbs" for each in scenarios):
        yield _PROCESSORS
    if all(each.network.kind == "cluster" for each in scenarios):
        yield _BYTES
    if any(each.network.switches == 2 for each in scenarios):
        yield _TRUNK


def _bars(scenarios: Scenarios, costs: Sequence[_Cost]) -> Figure:
    """Draw every contender's costs at the largest size, a column for each scenario."""
    names = {contender for contenders in scenarios.values() for contender in contenders}
    height = 0.55 + 0.27 * len(names)
    figure = Figure(
        figsize=(1.9 + 3.1 * len(scenarios), 0.5 + height * len(costs)),
        layout="constrained",
    )
    panels = figure.subplots(len(costs), len(scenarios), squeeze=False, sharey=True)
    for column, (scenario, contenders) in enumerate(scenarios.items()):
        found = _largest(contenders)
        for axes, cost in zip(panels[:, column], costs, strict=True):
            _bar(axes, found, cost)
        first, _, rest = scenario.title().partition(", ")
        title = f"{first}, {size(found[0].block_bytes)}, {rest}"
        panels[0, column].set_title(textwrap.fill(title, 44), fontsize=9)
    panels[0, 0].invert_yaxis()
    return figure


def _bar(axes: Any, found: Sequence[Summary], cost: _Cost) -> None:
    """Draw one cost of each contender as a bar."""
    values = [cost.of(each) for each in found]
    bars = axes.barh(
        [TITLES.get(each.contender, each.contender) for each in found],
        values,
        color=[_COLOURS.get(each.contender, "#000000") for each in found],
        hatch=["//" if each.contender in TUNED else "" for each in found],
        edgecolor="white",
    )
    axes.bar_label(bars, [number(each) for each in values], padding=3, fontsize=8)
    axes.margins(x=0.2)
    axes.grid(visible=False, axis="y")
    axes.set_xlabel(cost.label)
