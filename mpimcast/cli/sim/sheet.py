# SPDX-License-Identifier: BSD-3-Clause
"""The report of a comparison, as lines of text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mpimcast.cli.sim.choices import collective
from mpimcast.cli.sim.figures import row
from mpimcast.cli.sim.report import parity, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mpimcast.cli.sim.choices import Choices
    from mpimcast.cli.sim.comparison import Comparison

_HEAD = (
    ["algorithm", "time us", "/ bound", "p50 us", "p99 us", "p99.9 us", "bytes"],
    ["repair bytes", "lost", "deepest queue", "most loaded link", "its bytes", "load"],
)


_SEVERAL = (
    "          of the seeds: median times, mean bytes, percentiles over all ranks, "
    "the deepest queue, the most loaded link"
)


def sheet(comparison: Comparison, choices: Choices, spec: dict[str, Any]) -> list[str]:
    """Return the lines of a comparison's report."""
    ground = comparison.ground
    fabric = ground.fabric
    rows = [row(each, comparison) for each in comparison.contestants]
    last = spec["seed"] + choices.nseeds - 1
    seeds = f"seeds {spec['seed']} to {last}" if choices.nseeds > 1 else f"seed {last}"
    beside = f", beside {choices.beside}" if choices.beside else ""
    sizes = f"{fabric.nhosts} hosts, {fabric.nswitches} switches"
    blocks = f"{spec['nranks']} x {spec['block_bytes']} bytes, {collective(spec)}"
    lines = [
        f"fabric    {choices.fabric}: {sizes}, {len(fabric.links.links)} links",
        f"ranks     {blocks}{beside}; {choices.placement}, {seeds}",
        f"bound     {_us(comparison.bound_ns)} us, by what must pass a rank's links",
        *parity(spec, comparison.first),
        *([_SEVERAL] if choices.nseeds > 1 else []),
        "",
        *table([_HEAD[0] + _HEAD[1], *_rows(rows, ground.link_names())]),
        "",
        "bytes by class of link",
        *table(_class_rows(rows, ground.arrays.classes)),
        "",
    ]
    lines += [f"left out  {why}" for why in comparison.left_out]
    if violations := comparison.violations:
        return lines + [f"VIOLATED  {violation}" for violation in violations]
    return [*lines, "every property held"]


def _us(time_ns: int) -> str:
    return f"{time_ns / 1000:.1f}"


def _rows(rows: Sequence[dict[str, Any]], names: Sequence[str]) -> list[list[str]]:
    lines = []
    for each in rows:
        over = each["over_bound"]
        loaded = each["most_loaded"]
        times = [each[name] for name in ("p50_ns", "p99_ns", "p99.9_ns")]
        lines.append(
            [
                each["name"],
                _us(each["time_ns"]),
                "-" if over is None else f"{over:.3f}",
                *map(_us, times),
                str(each["bytes"]),
                str(each["repair_bytes"]),
                str(each["lost_datagrams"]),
                str(each["deepest"]["bytes"]),
                f"{names[loaded['link']]} ({loaded['link']})",
                str(loaded["bytes"]),
                f"{loaded['load']:.3f}",
            ]
        )
    return lines


def _class_rows(
    rows: Sequence[dict[str, Any]], classes: Sequence[str]
) -> list[list[str]]:
    head = ["algorithm", *classes]
    return [head] + [
        [each["name"], *(str(each["class_bytes"][name]) for name in classes)]
        for each in rows
    ]
