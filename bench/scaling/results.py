# SPDX-License-Identifier: BSD-3-Clause
"""Read a batch job's results: ``results.jsonl``, with a line for each step.

A line holds a description of the step, and what ``python -m mpimcast bench --json`` or
``demo`` wrote. Lines that are cut off, or hold no results, are left out, and noted.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

RESULTS = "results.jsonl"
OURS, LIBRARY = "mpimcast", "mpi"
CONTENDERS = (OURS, LIBRARY)


class Series(NamedTuple):
    """The properties that steps share which differ only in nodes and sizes.

    Such steps share a picture. `order` is the order of nodes, such as "topology".
    """

    collective: str
    transport: str
    ranks_per_node: int
    order: str

    def title(self) -> str:
        """Return the series in words, for a heading."""
        count = self.ranks_per_node
        ranks = f"{count} rank{'' if count == 1 else 's'} a node"
        return f"{self.collective}, {self.transport}, {ranks}, {self.order} order"


@dataclass(frozen=True)
class Row:
    """The results of a step for one size and one contender.

    Attributes
    ----------
    series : Series
        The series that the step belongs to.
    contender : str
        One of CONTENDERS.
    block_bytes : int
        The size of the blocks.
    seconds : tuple of float
        The time of each operation.
    rank_seconds : tuple of float
        The median time of the operations on each rank.
    link_bytes : float
        The bytes that every rank's link has to carry in an operation.
    sent_bytes : float
        The bytes that a rank sent in an operation, on average: counted for mpimcast,
        computed for the MPI library.
    by_library : bool
        Whether mpimcast left the operations to the MPI library.
    wrong_bytes : int
        The wrong bytes on all ranks.
    """

    series: Series
    contender: str
    block_bytes: int
    seconds: tuple[float, ...]
    rank_seconds: tuple[float, ...]
    link_bytes: float
    sent_bytes: float
    by_library: bool
    wrong_bytes: int


class Opening(NamedTuple):
    """The costs of opening a communicator, each the greatest of any rank."""

    seconds: float
    messages: int
    nbytes: int


@dataclass(frozen=True)
class Step:
    """The results of one step, which one line holds.

    Attributes
    ----------
    name, transport : str
        The step's name and its transport.
    nodes : tuple of str
        The node of each rank.
    begin : str
        The time at which the step began.
    library : str
        The version of the MPI library.
    opening : Opening
        The cost of opening its communicator.
    rows : tuple of Row
        Its results.
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
        """The number of nodes that the step ran on."""
        return len(set(self.nodes))


# ---- reading --------------------------------------------------------------


def read(path: Path) -> tuple[list[Step], list[str]]:
    """Return the steps of a file, and a note on each line that is left out."""
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


# The errors raised by a line that is not JSON, or has wrong types or numbers.
_NOT_RESULTS = (
    *(ValueError, TypeError, KeyError, AttributeError),
    *(OverflowError, RecursionError),
)


def _step(found: dict[str, Any]) -> Step:
    """Return the step of a line; raise one of _NOT_RESULTS if the line holds none."""
    if "model" in found:
        found = {**_DEMO_LACKS, **found, "measured": [_unshard(found)]}
    step, opening = found["step"], found["opening"]
    nodes = tuple(map(str, found["hosts"]))
    if not nodes or len(nodes) != found["ranks"]:
        raise ValueError(f"{len(nodes)} nodes are named for {found['ranks']} ranks")
    if len(set(nodes)) != int(step["nodes"]):
        raise ValueError(f"it ran on {len(set(nodes))} of {step['nodes']} nodes")
    transport = str(step["transport"])
    rows = []
    for measured in found["measured"]:
        series = Series(
            str(measured["collective"]),
            transport,
            int(step["ranks_per_node"]),
            str(step["order"]),
        )
        rows += [
            _row(series, contender, measured, len(nodes)) for contender in CONTENDERS
        ]
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


# Stand-ins for the fields that a step of the demo does not have.
_DEMO_LACKS = {
    "begin": "",
    "versions": {"mpi": ""},
    "opening": {"seconds": 0, "messages": 0, "bytes": 0},
}


def _unshard(found: dict[str, Any]) -> dict[str, Any]:
    """Return the demo's results as a measurement, with the model as the block."""
    nbytes, nranks = _positive(found["model_bytes"]), _positive(found["ranks"])

    def times(name: str, sent: str) -> dict[str, Any]:
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
        OURS: times(OURS, "datagram"),
        LIBRARY: times(LIBRARY, "payload"),
    }


def _row(series: Series, contender: str, measured: dict[str, Any], nranks: int) -> Row:
    """Return the row of one contender in what a line has measured."""
    found = measured[contender]
    seconds = tuple(map(_positive, found["seconds"]))
    rank_seconds = tuple(map(_positive, found["rank_seconds"]))
    if not seconds or len(rank_seconds) != nranks:
        raise ValueError(
            f"it has times of {len(seconds)} operations, {len(rank_seconds)} ranks"
        )
    # The part of the whole result that every rank's link has to carry.
    link_part = _finite(found["busbw_bytes_per_s"]) / _positive(
        found["algbw_bytes_per_s"]
    )
    return Row(
        series=series,
        contender=contender,
        block_bytes=int(_positive(measured["block_bytes"])),
        seconds=seconds,
        rank_seconds=rank_seconds,
        link_bytes=_positive(measured["total_bytes"]) * link_part,
        sent_bytes=_finite(found["sent_bytes_per_rank"]),
        by_library=contender == OURS and measured["path"] == LIBRARY,
        wrong_bytes=int(found["wrong_bytes"]),
    )


def _finite(value: object) -> float:
    """Return a finite number of at least 0; raise ValueError for other values."""
    if not isinstance(value, (int, float)) or not 0 <= float(value) < math.inf:
        raise ValueError(f"{value!r} is not a finite number of at least 0")
    return float(value)


def _positive(value: object) -> float:
    """Return a finite number above 0; raise ValueError for other values."""
    if not _finite(value):
        raise ValueError(f"{value!r} is not greater than 0")
    return _finite(value)
