# SPDX-License-Identifier: BSD-3-Clause
"""The traces of one job, found in a directory that may hold those of several."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mpimcast._support import trace_file
from mpimcast._support.trace_file import SUFFIX, TraceFileError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from mpimcast._support.trace_file import Events, Header


class Traced(NamedTuple):
    """The trace of one process."""

    header: Header
    events: Events


class Job(NamedTuple):
    """The traces of one job.

    Attributes
    ----------
    traces : list of Traced
        One for each process, by rank.
    bad : list of str
        Why files could not be read.
    nothers : int
        The number of files of other jobs.
    """

    traces: list[Traced]
    bad: list[str]
    nothers: int

    def of_rank(self, rank: int) -> int | None:
        """Return the number of the trace of a rank in COMM_WORLD; None without one."""
        for number, each in enumerate(self.traces):
            if each.header.process.rank == rank:
                return number
        return None


def load(folder: Path) -> Job:
    """Return the latest job that has left traces in a folder."""
    traces: list[Traced] = []
    bad: list[str] = []
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        found = _read(path)
        if isinstance(found, Traced):
            traces.append(found)
        else:
            bad.append(found)
    parts = _connected(traces)
    parts.sort(key=lambda part: max(each.header.written_s for each in part))
    chosen = parts.pop() if parts else []
    for part in reversed(parts):
        if _may_belong(part, chosen):
            chosen += part
    chosen.sort(key=lambda each: (each.header.process.rank, each.header.begun_s))
    return Job(chosen, bad, len(traces) - len(chosen))


def _read(path: Path) -> Traced | str:
    """Return the trace in a file or, in words, why it cannot be read."""
    try:
        return Traced(*trace_file.read(path))
    except TraceFileError as error:
        return str(error)
    except OSError as error:
        return f"{path}: {error.strerror or error}"


def _connected(traces: Sequence[Traced]) -> list[list[Traced]]:
    """Divide traces into those of processes that have shared streams, or clocks."""
    parts: dict[object, list[Traced]] = {}
    for each in traces:
        header = each.header
        names: set[object] = {t.channel for t in header.tracks if t.channel}
        names |= {header.process, *(offset.peer for offset in header.offsets)}
        joined = {id(parts[name]): parts[name] for name in names & parts.keys()}
        part = [each, *(other for known in joined.values() for other in known)]
        for known, old in list(parts.items()):
            if id(old) in joined:
                parts[known] = part
        parts.update(dict.fromkeys(names, part))
    return list({id(part): part for part in parts.values()}.values())


def _may_belong(part: Sequence[Traced], chosen: Sequence[Traced]) -> bool:
    """Return whether a part can be other ranks of the same job, by ranks and times."""
    ranks = [{each.header.process.rank for each in some} for some in (part, chosen)]
    begins = [min(each.header.begun_s for each in some) for some in (part, chosen)]
    ends = [max(each.header.written_s for each in some) for some in (part, chosen)]
    return not ranks[0] & ranks[1] and max(begins) <= min(ends)
