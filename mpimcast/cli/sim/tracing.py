# SPDX-License-Identifier: BSD-3-Clause
"""The trace of a simulated run, as a file for ui.perfetto.dev."""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from mpimcast._native.trace import Trace
from mpimcast._support.trace_file import MESSAGE, OPERATION, Header, Process, Track
from mpimcast.cli.sim.simulator import stamp_scale
from mpimcast.cli.trace import perfetto
from mpimcast.cli.trace.clocks import Shift
from mpimcast.cli.trace.job import Job, Traced

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mpimcast._support.trace_file import Events

# The most events that a trace keeps: they take 40 MiB.
_NSLOTS = 1 << 20


def new_trace() -> Trace:
    """Return a trace with room for a simulated run."""
    return Trace(_NSLOTS)


def write(
    path: str,
    trace: Trace,
    spec: dict[str, Any],
    result: dict[str, Any],
    places: Sequence[str] = (),
    *,
    peers: Mapping[str, Trace] = MappingProxyType({}),
) -> int:
    """Write what a run has traced; return how many events were dropped before.

    Parameters
    ----------
    path
        The file.
    trace
        The run's trace.
    spec, result
        The run's.
    places
        Where each rank is; by default on a network.
    peers
        The traces of the other algorithms' runs, by the algorithms' names.

    Raises
    ------
    OSError
        If it cannot be written.
    """
    events, ndropped = _read(trace)
    if result["stamped"]:
        events["amount"][events["kind"] == OPERATION] *= stamp_scale(spec)
    of_ranks = places or ["simulated"] * spec["nranks"]
    streams = [f"stream {stream}" for stream in range(spec["nstreams"])]
    traces = _by_rank(events, of_ranks, streams)
    for name, ring in peers.items():
        events, nlost = _read(ring)
        traces += _by_rank(events, [f"{name}, {place}" for place in of_ranks], [name])
        ndropped += nlost
    with Path(path).open("w", encoding="ascii") as file:
        perfetto.write(Job(traces, [], 0), [Shift(0, 0)] * len(traces), file)
    return ndropped


def _read(trace: Trace) -> tuple[Events, int]:
    """Return a trace's events, and how many were dropped."""
    events, nadded = trace.read()
    return events, nadded - len(events)


def _by_rank(
    events: Events, places: Sequence[str], streams: Sequence[str]
) -> list[Traced]:
    """Return the trace of each rank, whose streams have these names.

    Ranks are the first hosts. A message has its host for a track, and is shown with the
    first stream.
    """
    of_hosts = events["kind"] == MESSAGE
    ranks, tracks = np.divmod(events["track"], len(streams))
    ranks[of_hosts], tracks[of_hosts] = events["track"][of_hosts], 0
    events["track"] = tracks
    order = np.argsort(ranks, kind="stable")
    ends = np.cumsum(np.bincount(ranks, minlength=len(places)))
    parts = np.split(events[order], ends[:-1])
    return [
        _traced(rank, place, part, streams, len(places))
        for rank, (place, part) in enumerate(zip(places, parts, strict=False))
    ]


def _traced(
    rank: int, place: str, events: Events, streams: Sequence[str], nranks: int
) -> Traced:
    everyone = list(range(nranks))
    header = Header(
        process=Process(rank, place, rank),
        ended="exit",
        begun_s=0,
        written_s=0,
        ahead_ns=0,
        nadded=len(events),
        nsmall=0,
        tracks=[
            Track(name, f"{stream:x}", everyone) for stream, name in enumerate(streams)
        ],
        offsets=[],
    )
    return Traced(header, events)
