# SPDX-License-Identifier: BSD-3-Clause
"""The trace of a simulated run, as a file for ui.perfetto.dev."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mpimcast._native.trace import Trace
from mpimcast._support.trace_file import OPERATION, Header, Process, Track
from mpimcast.cli.sim.simulator import stamp_scale
from mpimcast.cli.trace import perfetto
from mpimcast.cli.trace.clocks import Shift
from mpimcast.cli.trace.job import Job, Traced

if TYPE_CHECKING:
    from collections.abc import Sequence

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
) -> int:
    """Write what a run has traced; return how many events were dropped before.

    Parameters
    ----------
    path
        The file.
    trace
        What the run has added to.
    spec, result
        The run's.
    places
        Where each rank is; by default on a network.

    Raises
    ------
    OSError
        If it cannot be written.
    """
    events, nadded = trace.read()
    if result["stamped"]:
        events["amount"][events["kind"] == OPERATION] *= stamp_scale(spec)
    ranks, tracks = np.divmod(events["track"], spec["nstreams"])
    events["track"] = tracks
    events = events[np.argsort(ranks, kind="stable")]
    ends = np.cumsum(np.bincount(ranks, minlength=spec["nranks"]))
    parts = np.split(events, ends[:-1])
    traces = [_traced(rank, places, part, spec) for rank, part in enumerate(parts)]
    job = Job(traces, [], 0)
    with Path(path).open("w", encoding="ascii") as file:
        perfetto.write(job, [Shift(0, 0)] * len(job.traces), file)
    return nadded - len(events)


def _traced(
    rank: int, places: Sequence[str], events: Events, spec: dict[str, Any]
) -> Traced:
    everyone = list(range(spec["nranks"]))
    header = Header(
        process=Process(rank, places[rank] if places else "simulated", rank),
        ended="exit",
        begun_s=0,
        written_s=0,
        ahead_ns=0,
        nadded=len(events),
        nsmall=0,
        tracks=[
            Track(f"stream {stream}", f"{stream:x}", everyone)
            for stream in range(spec["nstreams"])
        ],
        offsets=[],
    )
    return Traced(header, events)
