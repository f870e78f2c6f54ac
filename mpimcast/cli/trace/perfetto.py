# SPDX-License-Identifier: BSD-3-Clause
"""Writes traces as a file for ui.perfetto.dev and chrome://tracing.

The format is Chrome's Trace Event Format, in its JSON object form. A rank is a process
there. Each stream has threads: one for its operations, with their stages below them
(more, if operations overlap without one within the other), one for waits, one for
stalls and repairs and, if the ranks are simulated, one for turns, and one for messages
of other algorithms. Arrows lead from a
late entry to the end of a wait for it. Below the streams are the threads that torch's
profiler has recorded.
"""

from __future__ import annotations

import heapq
import json
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

import numpy as np

from mpimcast._support.trace_file import (
    ENTRY,
    LIBRARY,
    LOST,
    MESSAGE,
    NOBODY,
    OPERATION,
    OPERATIONS,
    REPAIRED,
    RESENT,
    STAGE,
    STAGES,
    STALL,
    TURN,
    WAIT,
)
from mpimcast.cli.trace.lanes import LANES_MAX, laid_out

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mpimcast._support.trace_file import Events, Track
    from mpimcast.cli.trace.clocks import Shift
    from mpimcast.cli.trace.job import Job, Traced
    from mpimcast.cli.trace.profiles import Slice

# The most arrows; the longest waits have them.
ARROWS_MAX = 10_000

# Threads of a stream: those for operations have the numbers below the others.
_MESSAGES, _TURNS, _WAITS, _REPAIRS, _THREADS = range(LANES_MAX, LANES_MAX + 5)

# The threads of a profile have numbers above those of all streams.
_PROFILED = _THREADS << 16

_REPAIR_NAMES = {LOST: "lost", REPAIRED: "repaired", RESENT: "resent"}

# An event of the format.
Entry = dict[str, Any]


class _Arrow(NamedTuple):
    """An arrow to the end of a wait; those of longer waits are greater.

    Attributes
    ----------
    length_ns : int
        How long the wait was.
    waiter, thread : int
        The number of the process that waited, and its thread.
    begin_ns, end_ns : int
        The wait, on the common clock.
    awaited : int
        The number of the awaited process.
    channel, epoch
        The operation.
    """

    length_ns: int
    waiter: int
    thread: int
    begin_ns: int
    end_ns: int
    awaited: int
    channel: str
    epoch: int


def write(
    job: Job,
    shifts: Sequence[Shift],
    file: TextIO,
    profiles: Sequence[Sequence[Slice]] = (),
) -> int:
    """Write a job's traces to a file; return how many events were written.

    Processes are written one after the other, so that memory is needed for one only.

    Parameters
    ----------
    job, shifts
        The traces, and how to put each of them on the common clock.
    file
        A file of text.
    profiles
        For each trace, what torch's profiler has recorded; or nothing at all.
    """
    file.write('{"displayTimeUnit": "ns", "traceEvents": [\n')
    nentries = 0
    for entry in _Export(job, shifts, profiles).entries():
        file.write(",\n" if nentries else "")
        file.write(json.dumps(entry))
        nentries += 1
    file.write("\n]}\n")
    return nentries


class _Export:
    """Makes the format's events."""

    def __init__(
        self,
        job: Job,
        shifts: Sequence[Shift],
        profiles: Sequence[Sequence[Slice]],
    ) -> None:
        self._job = job
        self._profiles = profiles or [()] * len(job.traces)
        self._shifts = [shift.shift_ns for shift in shifts]
        self._numbers = {
            each.header.process.rank: number
            for number, each in reversed(list(enumerate(job.traces)))
        }
        begins = [
            int(traced.events["begin_ns"].min()) + shift_ns
            for traced, shift_ns in zip(job.traces, self._shifts, strict=True)
            if len(traced.events)
        ]
        begins += [
            min(each.begin_ns for each in profile) + shift_ns
            for profile, shift_ns in zip(self._profiles, self._shifts, strict=True)
            if profile
        ]
        self._origin_ns = min(begins, default=0)
        self._arrows: list[_Arrow] = []

    def entries(self) -> Iterator[Entry]:
        for number, traced in enumerate(self._job.traces):
            yield from self._process(number, traced)
        yield from self._drawn_arrows()

    def _process(self, number: int, traced: Traced) -> Iterator[Entry]:
        process = traced.header.process
        yield _metadata(number, 0, "process_name", name=str(process))
        yield _metadata(number, 0, "process_sort_index", sort_index=number)
        for track, stream in enumerate(traced.header.tracks):
            mine = traced.events[traced.events["track"] == track]
            if len(mine) == 0:
                continue
            yield from self._operations(number, track, stream, mine)
            yield from self._others(number, track, stream, mine)
            yield from self._sent(number, track, stream, mine)
        yield from self._profile(number)

    def _profile(self, number: int) -> Iterator[Entry]:
        """Yield what torch's profiler has recorded in a process."""
        profile = self._profiles[number]
        threads = sorted({each.thread for each in profile})
        places = {thread: place for place, thread in enumerate(threads, _PROFILED)}
        for thread, place in places.items():
            name = f"torch, thread {thread}"
            yield _metadata(number, place, "thread_name", name=name)
            yield _metadata(number, place, "thread_sort_index", sort_index=place)
        for each in profile:
            yield {
                "ph": "X",
                "name": each.name,
                "cat": each.kind,
                "pid": number,
                "tid": places[each.thread],
                "ts": self._us(number, each.begin_ns),
                "dur": (each.end_ns - each.begin_ns) / 1000,
            }

    def _operations(
        self, number: int, track: int, stream: Track, mine: Events
    ) -> Iterator[Entry]:
        """Yield a stream's operations, and below them their stages.

        The stages of an operation are added right before it, so those between two
        operations, in the order of the ring, are the second one's.
        """
        operations, lanes = laid_out(mine, track)
        for lane in sorted(set(lanes) - {-1}):
            name = stream.name if lane == 0 else f"{stream.name} ({lane + 1})"
            thread = track * _THREADS + lane
            yield _metadata(number, thread, "thread_name", name=name)
            yield _metadata(number, thread, "thread_sort_index", sort_index=thread)
        places = {
            (event["begin_ns"], event["end_ns"], event["epoch"]): lane
            for event, lane in zip(operations, lanes, strict=True)
        }
        stages: list[np.void] = []
        for event in mine[np.isin(mine["kind"], (OPERATION, LIBRARY, STAGE))]:
            if event["kind"] == STAGE:
                stages.append(event)
                continue
            lane = places[event["begin_ns"], event["end_ns"], event["epoch"]]
            if lane >= 0:
                thread = track * _THREADS + lane
                yield self._operation(number, thread, stream, event)
                for stage in stages:
                    name = STAGES.get(int(stage["detail"]), "stage")
                    yield self._slice(number, thread, name, "stage", stage)
            stages.clear()

    def _operation(
        self, number: int, thread: int, stream: Track, event: np.void
    ) -> Entry:
        name = OPERATIONS.get(int(event["detail"]), "operation")
        kind = "library" if event["kind"] == LIBRARY else "operation"
        entry = self._slice(number, thread, name, kind, event)
        entry["args"] = {"bytes": int(event["amount"])}
        if event["epoch"]:
            entry["args"] |= {
                "operation": int(event["epoch"]),
                "channel": stream.channel,
            }
        if event["count"]:
            entry["args"]["error"] = int(event["count"])
            entry["cname"] = "terrible"
            if event["peer"] != NOBODY:
                entry["args"]["culprit"] = stream.ranks[int(event["peer"])]
        return entry

    def _others(
        self, number: int, track: int, stream: Track, mine: Events
    ) -> Iterator[Entry]:
        """Yield a stream's waits, stalls and repairs."""
        for thread, name in ((_WAITS, "waits"), (_REPAIRS, "stalls, repairs")):
            place = track * _THREADS + thread
            yield _metadata(number, place, "thread_name", name=f"{stream.name}: {name}")
            yield _metadata(number, place, "thread_sort_index", sort_index=place)
        waits, repairs = track * _THREADS + _WAITS, track * _THREADS + _REPAIRS
        for event in mine[np.isin(mine["kind"], (WAIT, STALL, *_REPAIR_NAMES))]:
            kind, peer = int(event["kind"]), int(event["peer"])
            awaited = None if peer == NOBODY else stream.ranks[peer]
            whom = "" if awaited is None else f" rank {awaited}"
            if kind in _REPAIR_NAMES:
                name = f"{_REPAIR_NAMES[kind]} {event['count']}"
                entry = self._slice(number, repairs, name, "repair", event)
                del entry["dur"]
                entry |= {"ph": "i", "s": "t"}
                yield entry
                continue
            entry = self._slice(
                number,
                waits if kind == WAIT else repairs,
                f"awaits{whom}" if kind == WAIT else f"stall{whom}",
                "wait" if kind == WAIT else "stall",
                event,
            )
            entry["args"] = {
                "operation": int(event["epoch"]),
                "awaited": awaited,
                "stage": STAGES.get(int(event["detail"]), ""),
                "idle_us": int(event["amount"]) / 1000,
                "sleeps" if kind == WAIT else "missing": int(event["count"]),
            }
            yield entry
            if kind == WAIT and event["detail"] == ENTRY and awaited is not None:
                self._remember(number, waits, stream, event, awaited)

    def _sent(
        self, number: int, track: int, stream: Track, mine: Events
    ) -> Iterator[Entry]:
        """Yield when a simulated rank has multicast, and when it has sent messages."""
        for kind, place, name in (
            (TURN, _TURNS, "turn"),
            (MESSAGE, _MESSAGES, "message"),
        ):
            events, thread = mine[mine["kind"] == kind], track * _THREADS + place
            if len(events):
                title = f"{stream.name}: {name}s"
                yield _metadata(number, thread, "thread_name", name=title)
                yield _metadata(number, thread, "thread_sort_index", sort_index=thread)
            for event in events:
                entry = self._slice(number, thread, _sending(event), name, event)
                if kind == MESSAGE:
                    entry["args"] = {"bytes": int(event["amount"])}
                yield entry

    def _slice(
        self, number: int, thread: int, name: str, kind: str, event: np.void
    ) -> Entry:
        begin_ns, end_ns = int(event["begin_ns"]), int(event["end_ns"])
        return {
            "ph": "X",
            "name": name,
            "cat": kind,
            "pid": number,
            "tid": thread,
            "ts": self._us(number, begin_ns),
            "dur": (end_ns - begin_ns) / 1000,
        }

    def _us(self, number: int, time_ns: int) -> float:
        return (time_ns + self._shifts[number] - self._origin_ns) / 1000

    # ---- arrows --------------------------------------------------------------

    def _remember(
        self, number: int, thread: int, stream: Track, event: np.void, awaited: int
    ) -> None:
        """Keep a wait for an arrow, unless enough longer ones are known."""
        peer = self._numbers.get(awaited)
        if peer is None:
            return
        begin_ns, end_ns = int(event["begin_ns"]), int(event["end_ns"])
        arrow = _Arrow(
            end_ns - begin_ns,
            number,
            thread,
            begin_ns + self._shifts[number],
            end_ns + self._shifts[number],
            peer,
            stream.channel,
            int(event["epoch"]),
        )
        push = heapq.heappush if len(self._arrows) < ARROWS_MAX else heapq.heappushpop
        push(self._arrows, arrow)

    def _drawn_arrows(self) -> Iterator[Entry]:
        """Yield arrows whose awaited process began the operation during the wait."""
        by_place: dict[tuple[int, str], list[_Arrow]] = {}
        for arrow in self._arrows:
            by_place.setdefault((arrow.awaited, arrow.channel), []).append(arrow)
        drawn = 0
        for (number, channel), arrows in by_place.items():
            header, events = self._job.traces[number]
            channels = [track.channel for track in header.tracks]
            if channel not in channels:
                continue
            track = channels.index(channel)
            operations, lanes = laid_out(events, track)
            begun = {
                int(event["epoch"]): (int(event["begin_ns"]), lane)
                for event, lane in zip(operations, lanes, strict=True)
            }
            for arrow in arrows:
                begin_ns, lane = begun.get(arrow.epoch, (0, -1))
                at_ns = begin_ns + self._shifts[number]
                if lane < 0 or not arrow.begin_ns < at_ns <= arrow.end_ns:
                    continue
                drawn += 1
                common = {"name": "entered", "cat": "wait", "id": drawn}
                yield common | {
                    "ph": "s",
                    "pid": number,
                    "tid": track * _THREADS + lane,
                    "ts": (at_ns - self._origin_ns) / 1000,
                }
                yield common | {
                    "ph": "f",
                    "bp": "e",
                    "pid": arrow.waiter,
                    "tid": arrow.thread,
                    "ts": (arrow.end_ns - self._origin_ns) / 1000,
                }


def _sending(event: np.void) -> str:
    """Return what a simulated rank sent."""
    if event["kind"] == TURN:
        return f"multicasts {event['count']}"
    return f"sends to {'a switch' if event['peer'] == NOBODY else event['peer']}"


def _metadata(number: int, thread: int, about: str, /, **arguments: object) -> Entry:
    return {"ph": "M", "name": about, "pid": number, "tid": thread, "args": arguments}
