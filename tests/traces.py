# SPDX-License-Identifier: BSD-3-Clause
"""Makes traces for tests: headers, events, and files of them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from mpimcast._support import trace_file
from mpimcast._support.trace_file import EVENT, NOBODY, Header, Offset, Process, Track

if TYPE_CHECKING:
    from mpimcast._support.trace_file import Events

NRANKS = 4
WORLD = Track("world", "abc", list(range(NRANKS)))


def header(
    rank: int = 0,
    *,
    nadded: int = 0,
    tracks: Iterable[Track] = (WORLD,),
    pid: int = 100,
    begun_s: float = 0.0,
    written_s: float = 10.0,
) -> Header:
    """Return the header of a rank."""
    return Header(
        process=Process(rank, "host", pid + rank),
        ended="exit",
        begun_s=begun_s,
        written_s=written_s,
        ahead_ns=0,
        nadded=nadded,
        nsmall=2,
        tracks=list(tracks),
        offsets=[Offset(Process(0, "host", pid), 0, 1000 * rank)],
    )


def event(kind: int, begin_ns: int, end_ns: int, **fields: int) -> tuple[int, ...]:
    """Return an event of the first track; `fields` replace what it has else."""
    usual = {"amount": end_ns - begin_ns, "epoch": 1, "peer": NOBODY, "count": 0}
    known = usual | {"track": 0, "detail": 1} | fields
    return (
        *(begin_ns, end_ns, known["amount"], known["epoch"], known["peer"]),
        *(known["count"], known["track"], kind, known["detail"]),
    )


def events(*rows: tuple[int, ...]) -> Events:
    """Return events as a file has them."""
    return np.array(list(rows), EVENT)


def write(folder: Path, head: Header, found: Events) -> Path:
    """Write a file; return its path."""
    path = trace_file.path_of(str(folder), head.process)
    trace_file.write(path, head, found)
    return path
