# SPDX-License-Identifier: BSD-3-Clause
"""What a batch job keeps of its steps: a line of ``results.jsonl`` for each.

It is what ``python -m mpimcast bench --json`` wrote, or ``demo``, and which step it
was. Lines that are cut off, or no results, are named and left out.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from bench.summary import OURS

RESULTS = "results.jsonl"
LIBRARY = "mpi"
WAYS = (OURS, LIBRARY)


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


# ---- reading --------------------------------------------------------------


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
    if "model" in found:
        found = {**_NOT_TOLD, **found, "measured": [_unshard(found)]}
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


# Of the demo's step.
_NOT_TOLD = {
    "begin": "",
    "versions": {"mpi": ""},
    "opening": {"seconds": 0, "messages": 0, "bytes": 0},
}


def _unshard(found: dict[str, Any]) -> dict[str, Any]:
    """Return what the demo found as a measurement, with the model for a block."""
    nbytes, nranks = _positive(found["model_bytes"]), _positive(found["ranks"])

    def way(name: str, sent: str) -> dict[str, Any]:
        each = found[name]
        bandwidth = nbytes / _positive(each["seconds"])
        return {
            "seconds": [each["seconds"]],
            "rank_seconds": each["rank_seconds"],
            "algbw_bytes_per_s": bandwidth,
            "busbw_bytes_per_s": bandwidth * (nranks - 1) / nranks,
            "sent_bytes_per_rank": each[f"{sent}_bytes_sent_per_rank"],
            "wrong_bytes": found["different_bytes"] if name == OURS else 0,
        }

    return {
        "collective": f"unshard of {found['model']}",
        "block_bytes": nbytes,
        "total_bytes": nbytes,
        "path": str(found["path"]).partition(":")[0],
        OURS: way(OURS, "datagram"),
        LIBRARY: way(LIBRARY, "payload"),
    }


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
