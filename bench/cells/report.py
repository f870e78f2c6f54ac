# SPDX-License-Identifier: BSD-3-Clause
"""Write a page on the measurements in a folder, and its tables for a README.

The page contains its pictures, and is made from the measurements alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

from bench.cells import comparison, goals, summary
from bench.cells.cells import CELLS
from bench.cells.goal import Reached
from bench.cells.pictures import draw
from bench.cells.ratio import Ratio
from bench.cells.scenario import Scenario
from bench.cells.summary import Scenarios, Summary
from bench.jobs.contenders import OUR_CONTENDERS, TITLES
from bench.jobs.measurement import Measurement, read
from bench.page import html
from bench.page.html import figure, group, row, table
from bench.page.spread import Spread
from bench.page.units import ms, percent, size

_GOALS = """<h2>Goals</h2>
<p class="note">Each goal of the project, its bound, the worst figure of all scenarios
and sizes to which it applies, and where that figure was measured.</p>
"""
_OVERVIEW = """<h2>mpimcast, the best peer and gloo</h2>
<p class="note">How many times as fast as the peer mpimcast is, taken round by round:
the median of the rounds, and in brackets the extremes. The best peer is the one with
the least median time, first of all peers, then of those that are not tuned by hand.
Gloo is no peer, and has columns of its own: mpimcast's speed as a multiple of gloo's,
and its processor time as a share of gloo's.
Where a row says so, mpimcast left the operation to the MPI library.</p>
"""


def write(folder: Path) -> Path:
    """Write the page and the pictures to the folder; return the path of the page."""
    measurements = list(read(sorted(folder.glob("*.jsonl"))))
    if not measurements:
        raise ValueError(f"{folder} has no measurements")
    scenarios = summary.summarise(measurements)
    cells = "".join(_cell(name, scenarios, folder) for name in CELLS)
    body = "".join(
        (
            _conclusion(scenarios),
            _OVERVIEW,
            _overview(scenarios),
            cells,
            _GOALS,
            _goals(scenarios),
        )
    )
    return html.write(folder, _about(measurements), body)


def goals_table(scenarios: Scenarios) -> Iterator[str]:
    """Yield the lines of a Markdown table of goals."""
    yield "| goal | bound | worst figure | measured at |"
    yield "|---|---|---|---|"
    for each in goals.reached(scenarios):
        figure = f"{each.figure:.3g}"
        words = [*_goal(each), figure if each.holds else f"**{figure}**", _where(each)]
        yield f"| {' | '.join(words)} |"


def largest_table(scenarios: Scenarios) -> Iterator[str]:
    """Yield the lines of a Markdown table of each scenario's largest blocks.

    It compares with gloo if gloo was measured anywhere.
    """
    compared = comparison.largest(scenarios)
    heads = [
        *("", "block", "mpimcast", "best peer", "times as fast as the peer"),
        *("bytes sent by a host, of the peer's", "processor time, of the peer's"),
    ]
    has_gloo = any(each.gloo for each in compared)
    if has_gloo:
        heads += ["times as fast as gloo", "processor time, of gloo's"]
    yield f"|{' | '.join(heads)} |"
    yield f"|{'---|' * len(heads)}"
    for each in compared:
        words = [
            *(each.label, size(each.ours.block_bytes), _ours(each.ours)),
            *(_peer(each.speed_over_best), _times(each.speed_over_best.spread)),
            *(percent(each.bytes_share), percent(each.processor_share)),
        ]
        if has_gloo:
            over_gloo = each.speed_over_gloo
            words.append(_times(over_gloo) if over_gloo else "")
            words.append(percent(each.processor_share_of_gloo))
        yield f"| {' | '.join(words)} |"


# ---- the parts of the page ---------------------------------------------------


def _about(measurements: Sequence[Measurement]) -> str:
    """Return a sentence on the time and place of measurement, and on wrong bytes."""
    machines = {str(each.machine) for each in measurements}
    libraries = sorted({each.versions.get("mpi", "") for each in measurements} - {""})
    torch = {each.versions.get("torch", "") for each in measurements} - {""}
    libraries += [f"torch {version}" for version in sorted(torch)]
    loads = [load for each in measurements for load in each.load]
    begins = [each.begin for each in measurements]
    wrong = sum(each.wrong_bytes for each in measurements)
    rounds = 1 + max(each.round for each in measurements)
    machine = measurements[0].machine
    on = f"{len(machines)} machines"
    if len(machines) == 1:
        on = (
            f"{machine.get('processor')}, {machine.get('cores')} cores, "
            f"Linux {machine.get('kernel')}"
        )
    return (
        f"{len(measurements)} measurements in up to {rounds} rounds, from "
        f"{min(begins)} to {max(begins)}, on {on}; "
        f"{', '.join(libraries)}. Load average {min(loads):.1f} to {max(loads):.1f}; "
        f"wrong bytes: {wrong}."
    )


def _conclusion(scenarios: Scenarios) -> str:
    first, *rest = map(escape, comparison.conclusion(scenarios))
    lines = "".join(f"<li>{each}</li>\n" for each in rest)
    return f"<h2>Conclusion</h2>\n<p>{first}</p>\n<ul>\n{lines}</ul>\n"


_TIMES = "times as fast"
_OVERVIEW_HEADS = (
    *("", "mpimcast", "best peer", _TIMES, "best untuned peer", _TIMES),
    *("times as fast as gloo", "processor time, of gloo's"),
)


def _overview(scenarios: Scenarios) -> str:
    """Return the table of the best peers in every scenario and size."""
    rows, cell = [], ""
    for each in comparison.compare(scenarios):
        scenario, ours = each.scenario, each.ours
        best, untuned = each.speed_over_best, each.speed_over_untuned
        over_gloo = each.speed_over_gloo
        if scenario.cell != cell:
            cell = scenario.cell
            title = CELLS[cell].title if cell in CELLS else ""
            rows.append(group(f"{cell}. {title}", len(_OVERVIEW_HEADS)))
        words = [
            *(f"{each.label}, {size(ours.block_bytes)}", _ours(ours)),
            *(_peer(best), _coloured(best.spread)),
            _peer(untuned) if untuned else "",
            _coloured(untuned.spread) if untuned else "",
            _coloured(over_gloo) if over_gloo else "",
            percent(each.processor_share_of_gloo),
        ]
        rows.append(row(words))
    return table(_OVERVIEW_HEADS, rows)


def _goals(scenarios: Scenarios) -> str:
    rows = [
        row(
            [
                *_goal(each),
                _judged(f"{each.figure:.3g}", ahead=each.holds),
                _where(each),
            ]
        )
        for each in goals.reached(scenarios)
    ]
    return table(["", "bound", "worst figure", "measured at"], rows)


def _goal(each: Reached) -> tuple[str, str]:
    """Return a goal's label, and its bound in words."""
    goal = each.goal
    bound = f"{'≥' if goal.is_minimum else '≤'} {goal.bound:.3g}"
    return goal.label, bound


def _where(each: Reached) -> str:
    return f"{each.scenario.title()}, {size(each.block_bytes)}"


def _cell(name: str, scenarios: Scenarios, folder: Path) -> str:
    """Return the section on one cell, or nothing if it was not measured."""
    of_cell = {
        scenario: contenders
        for scenario, contenders in scenarios.items()
        if scenario.cell == name
    }
    if not of_cell:
        return ""
    doc = (CELLS[name].measure.__doc__ or "").strip()
    pictures = "".join(map(figure, draw(of_cell, folder, f"cell-{name}".lower())))
    return (
        f"<h2>{name}. {escape(CELLS[name].title)}</h2>\n"
        f'<p class="note">{escape(doc)}</p>\n'
        f"{pictures}{_details(of_cell)}{_stages(of_cell)}\n"
    )


_HEADS = (
    *("", "time", "least", "greatest", "MB/s", "share of link", "sent by a host"),
    *("over trunk", "processor time", "dropped", "lost", "repaired"),
)
_COLUMNS = (
    "Share of link: the payload, divided by what a host's link can carry in the time. "
    "Sent by a host, over trunk: what the busiest host sent, and what the trunk "
    "carried in its busier direction, in blocks. Dropped: the frames that full queues "
    "dropped. Lost: the chunks that mpimcast requested again. Repaired: the bytes "
    "that it sent again, divided by the bytes lost."
)


def _details(of_cell: Scenarios) -> str:
    rows = []
    for scenario, contenders in of_cell.items():
        rows.append(group(scenario.title(), len(_HEADS)))
        for contender, sizes in contenders.items():
            rows += [
                row(_detail(scenario, each), ours=contender in OUR_CONTENDERS)
                for each in sizes
            ]
    return table(_HEADS, rows) + f'<p class="note">{_COLUMNS}</p>'


def _detail(scenario: Scenario, each: Summary) -> list[str]:
    seconds = each.seconds
    part = summary.link_part(scenario, each)
    repaired = f"{each.repair_bytes / each.lost_bytes:.2f}" if each.lost_bytes else ""
    ours = each.contender in OUR_CONTENDERS
    bandwidth = scenario.payload_bytes(each.block_bytes) / seconds.median / 1e6
    return [
        f"{_title(each)}, {size(each.block_bytes)}",
        *map(ms, seconds),
        *(f"{bandwidth:.1f}", "" if part is None else f"{part:.3f}"),
        *map(_blocks, (each.host_blocks, each.trunk_blocks)),
        "" if each.processor_s is None else ms(each.processor_s),
        *(str(each.dropped_frames or ""), str(each.lost_chunks) if ours else ""),
        repaired if ours else "",
    ]


_STAGE_HEADS = (
    *("mpimcast", "time", *summary.STAGES, "other"),
    *("control", "calls/MiB sent", "calls/MiB received", "processor time"),
)
_STAGE_COLUMNS = (
    "Where mpimcast's time goes, averaged over ranks. Entry: the entry barrier, with "
    "the wait for the rank that begins last. Multicast: until every chunk has been "
    "sent or requested. Repair: until every chunk is present. Release: the release "
    "barrier, until no rank needs this one. Other: how much longer the slowest rank "
    "takes than the average, less the wait for late ranks, which the time does not "
    "include. Control: the control datagrams that a rank sends. Calls: the system "
    "calls that send datagrams, and that receive or look for them, per MiB of data "
    "with its headers."
)


def _stages(of_cell: Scenarios) -> str:
    rows = [
        row(
            [
                f"{_label(scenario, each)}, {size(each.block_bytes)}",
                ms(each.seconds.median),
                *(ms(each.stages_s[name]) for name in summary.STAGES),
                ms(each.seconds.median - sum(each.stages_s.values())),
                f"{each.control_datagrams:.1f}",
                f"{each.sending_calls:.1f}",
                f"{each.receiving_calls:.1f}",
                "" if each.processor_s is None else ms(each.processor_s),
            ]
        )
        for scenario, contenders in of_cell.items()
        for contender in contenders
        for each in contenders[contender]
        if contender in OUR_CONTENDERS and not each.by_library
    ]
    if not rows:
        return ""
    return table(_STAGE_HEADS, rows) + f'<p class="note">{_STAGE_COLUMNS}</p>'


# ---- cells of tables ---------------------------------------------------------


def _label(scenario: Scenario, ours: Summary) -> str:
    return f"{scenario.title()}, {TITLES[ours.contender]}"


def _title(each: Summary) -> str:
    note = ": by the library" if each.by_library else ""
    return f"{TITLES.get(each.contender, each.contender)}{note}"


def _ours(ours: Summary) -> str:
    note = " (by the library)" if ours.by_library else ""
    return f"{ms(ours.seconds.median)}{note}"


def _blocks(blocks: float | None) -> str:
    return "" if blocks is None else f"{blocks:.2f}"


def _peer(over_peer: Ratio) -> str:
    return TITLES.get(over_peer.peer, over_peer.peer)


def _times(spread: Spread) -> str:
    return f"{spread.median:.2f} ({spread.low:.2f} to {spread.high:.2f})"


def _coloured(spread: Spread) -> str:
    """Return a ratio as HTML, coloured if the same contender won every round."""
    if spread.low <= 1 <= spread.high:
        return _times(spread)
    return _judged(_times(spread), ahead=spread.low > 1)


def _judged(text: str, *, ahead: bool) -> str:
    return f'<span class="{"ahead" if ahead else "behind"}">{text}</span>'
