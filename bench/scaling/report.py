# SPDX-License-Identifier: BSD-3-Clause
"""Write a page on a batch job's results, which are in its ``results.jsonl``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

from bench.page import html
from bench.page.html import figure, group, row, table
from bench.page.spread import spread
from bench.page.units import ms, number, size
from bench.scaling import curves, results
from bench.scaling.curves import Curves, Openings, efficiency
from bench.scaling.nodes import Node, compare
from bench.scaling.pictures import draw_nodes, draw_opening, draw_sizes
from bench.scaling.results import Series, Step

_HEADS = (
    *("size", "nodes", "mpimcast", "MPI library", "times as fast"),
    *("MB/s, mpimcast", "MPI library", "efficiency, mpimcast", "MPI library"),
    *("sent, mpimcast", "MPI library"),
)
_COLUMNS = (
    "Times as fast: the library's time divided by mpimcast's, in colour where the "
    "tenth and ninetieth percentiles do not overlap. MB/s: the bus bandwidth. Sent: "
    "the bytes that a rank sent, divided by the size; counted for mpimcast, computed "
    "for the library."
)


def write(folder: Path) -> Path:
    """Write the page and the pictures to the job's folder; return the page's path."""
    steps, notes = results.read(folder / results.RESULTS)
    if not steps:
        raise ValueError("; ".join([f"{folder} has no results", *notes]))
    body = "".join(
        (
            "".join(f'<p class="behind">{escape(note)}</p>\n' for note in notes),
            *_series(steps, folder),
            _nodes(compare(steps), folder),
            _opening(curves.openings(steps), folder),
        )
    )
    return html.write(folder, _about(steps), body)


def _about(steps: Sequence[Step]) -> str:
    """Return a sentence on when and with what the job measured, and on wrong bytes."""
    counts = sorted({step.nnodes for step in steps})
    wrong = sum(row.wrong_bytes for step in steps for row in step.rows)
    parts = [
        f"{len(steps)} steps on {', '.join(map(str, counts))} nodes",
        *sorted({step.library for step in steps} - {""}),
        f"wrong bytes: {wrong}",
    ]
    if begins := sorted({step.begin for step in steps} - {""}):
        parts.insert(1, f"from {begins[0]} to {begins[-1]}")
    return f"{'; '.join(parts)}."


# ---- against nodes -----------------------------------------------------------


def _series(steps: Sequence[Step], folder: Path) -> Iterator[str]:
    for index, (series, sizes) in enumerate(curves.by_series(steps).items()):
        words = re.findall(r"\w+", " ".join(map(str, series)).lower())
        name = "-".join(["scaling", str(index), *words])
        pictures = "".join(map(figure, draw_sizes(series.title(), sizes, folder, name)))
        yield f"<h2>{escape(series.title())}</h2>\n{pictures}{_table(series, sizes)}"


def _table(series: Series, sizes: dict[int, Curves]) -> str:
    rows = [group(series.title(), len(_HEADS))]
    rows += [row(words) for each in sizes.items() for words in _lines(*each)]
    return table(_HEADS, rows) + f'<p class="note">{_COLUMNS}</p>\n'


def _lines(nbytes: int, contenders: Curves) -> Iterator[list[str]]:
    """Yield the rows of one size, one for each number of nodes."""
    parts = [dict(efficiency(points)) for points in contenders.values()]
    for both in zip(*contenders.values(), strict=True):
        ours, theirs = both
        ratio = theirs.seconds.median / ours.seconds.median
        ahead = ours.seconds.high < theirs.seconds.low
        behind = ours.seconds.low > theirs.seconds.high
        kind = "ahead" if ahead else "behind" if behind else ""
        note = " (by the library)" if ours.by_library else ""
        found = [part.get(ours.nnodes) for part in parts]
        yield [
            *(size(nbytes), str(ours.nnodes), f"{ms(ours.seconds.median)}{note}"),
            *(ms(theirs.seconds.median), f'<span class="{kind}">{ratio:.2f}</span>'),
            *(number(each.bandwidth.median / 1e6) for each in both),
            *("" if part is None else f"{part.median:.2f}" for part in found),
            *(f"{each.sent_bytes / nbytes:.2f}" for each in both),
        ]


# ---- nodes and opening -------------------------------------------------------


def _nodes(nodes: Sequence[Node], folder: Path) -> str:
    if not nodes:
        return ""
    outliers = [node for node in nodes if node.is_outlier]
    rows = [
        row(
            [
                *(escape(node.name), f"{node.ratio.median:.2f}"),
                f"{node.ratio.low:.2f} to {node.ratio.high:.2f}",
                f"{node.nslow} of {node.nmeasurements}",
            ]
        )
        for node in outliers
    ]
    heads = ["node", "times the others' time", "extremes", "outlier in"]
    found = table(heads, rows) if rows else "<p>No node is an outlier.</p>\n"
    return f"<h2>Nodes</h2>\n{found}{figure(draw_nodes(nodes, folder))}"


def _opening(found: Openings, folder: Path) -> str:
    if not found:
        return ""
    rows = []
    for (transport, nranks), each in found.items():
        seconds, messages, nbytes = (
            spread(values) for values in zip(*each, strict=True)
        )
        words = [escape(transport), str(nranks), ms(seconds.median)]
        words += [f"{messages.median:g}", f"{nbytes.median:,.0f}"]
        rows.append(row(words))
    heads = ["transport", "ranks", "time", "messages", "bytes"]
    shown = figure(draw_opening(found, folder))
    return f"<h2>Opening a communicator</h2>\n{table(heads, rows)}{shown}"
