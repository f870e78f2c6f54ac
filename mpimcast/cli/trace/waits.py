# SPDX-License-Identifier: BSD-3-Clause
"""Who made whom wait.

A rank that is awaited may itself await another. So each wait is passed on: as long as
the awaited rank was waiting, too, the rank that it awaited is to blame, and so on. What
is left when nobody is awaited further is the blame of that last rank. It may be slow
itself, or the network to it.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left, bisect_right
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from mpimcast._support.trace_file import ENTRY, NOBODY, OPERATION, OPERATIONS, WAIT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mpimcast.cli.trace.clocks import Shift
    from mpimcast.cli.trace.job import Traced

# A process's longest waits count, up to so many; what is left out is told.
WAITS_MAX = 4096

# How often a wait is passed on at most: through as many rounds as barriers have.
_PASSES_MAX = 20


@dataclass(frozen=True)
class Wait:
    """One wait, on the common clock; ranks are those in COMM_WORLD.

    Attributes
    ----------
    rank, awaited : int
        Who waited, and for whom.
    begin_ns, end_ns : int
        When it began and ended.
    idle_ns : int
        How much of that the rank had nothing to do.
    enters : bool
        Whether the rank waited for all to enter, and not for data.
    operation : str
        The operation, in words.
    """

    rank: int
    awaited: int
    begin_ns: int
    end_ns: int
    idle_ns: int
    enters: bool
    operation: str


@dataclass
class Blame:
    """What one rank is to blame for.

    Attributes
    ----------
    rank : int
        The rank.
    entry_ns, data_ns : int
        How long others waited because of it: until it had entered, and for data.
    nwaits : int
        The number of waits that it had a part in.
    by_rank : dict
        How long each other rank waited because of it.
    longest : Wait or None
        The wait to which it contributed most.
    longest_ns : int
        How much that was.
    """

    rank: int
    entry_ns: int = 0
    data_ns: int = 0
    nwaits: int = 0
    by_rank: defaultdict[int, int] = field(default_factory=lambda: defaultdict(int))
    longest: Wait | None = None
    longest_ns: int = 0

    @property
    def total_ns(self) -> int:
        """How long others waited because of this rank."""
        return self.entry_ns + self.data_ns

    def add(self, wait: Wait, part_ns: int) -> None:
        """Add this rank's part in a wait."""
        if wait.enters:
            self.entry_ns += part_ns
        else:
            self.data_ns += part_ns
        self.nwaits += 1
        self.by_rank[wait.rank] += part_ns
        if part_ns > self.longest_ns:
            self.longest, self.longest_ns = wait, part_ns


def find(traces: Sequence[Traced], shifts: Sequence[Shift]) -> tuple[list[Wait], int]:
    """Return the longest waits of each process, and how many were left out."""
    waits: list[Wait] = []
    nleft_out = 0
    for traced, shift in zip(traces, shifts, strict=True):
        header, events = traced
        names = _operations(traced)
        found = events[(events["kind"] == WAIT) & (events["peer"] != NOBODY)]
        if len(found) > WAITS_MAX:
            nleft_out += len(found) - WAITS_MAX
            lengths = found["end_ns"] - found["begin_ns"]
            found = found[np.argpartition(lengths, -WAITS_MAX)[-WAITS_MAX:]]
        for event in found.tolist():
            begin_ns, end_ns, idle_ns, epoch, peer, _, track, _, stage = event
            stream = header.tracks[track]
            name = names.get((track, epoch), "an operation")
            waits.append(
                Wait(
                    header.process.rank,
                    stream.ranks[peer],
                    begin_ns + shift.shift_ns,
                    end_ns + shift.shift_ns,
                    min(idle_ns, end_ns - begin_ns),
                    stage == ENTRY,
                    f"{name} {epoch} of {stream.name}",
                )
            )
    return waits, nleft_out


def _operations(traced: Traced) -> dict[tuple[int, int], str]:
    """Return the names of a process's operations, by track and epoch."""
    events = traced.events
    found = events[events["kind"] == OPERATION][["track", "epoch", "detail"]]
    return {
        (track, epoch): OPERATIONS.get(detail, "operation")
        for track, epoch, detail in found.tolist()
    }


def blame(waits: Sequence[Wait]) -> list[Blame]:
    """Return who is to blame for waits, the greatest blame first."""
    by_rank: defaultdict[int, list[Wait]] = defaultdict(list)
    for wait in waits:
        by_rank[wait.rank].append(wait)
    blamed: dict[int, Blame] = {}
    passing = _Passing(by_rank)
    for wait in waits:
        length_ns = max(1, wait.end_ns - wait.begin_ns)
        parts = passing.parts(wait)
        for rank, part_ns in parts.items():
            if part_ns:
                mine = blamed.setdefault(rank, Blame(rank))
                mine.add(wait, part_ns * wait.idle_ns // length_ns)
    return sorted(blamed.values(), key=lambda each: -each.total_ns)


class _Passing:
    """Passes waits on to those whom the awaited ranks awaited themselves.

    Parameters
    ----------
    waits
        The waits of each rank.
    """

    def __init__(self, waits: Mapping[int, Sequence[Wait]]) -> None:
        self._waits = {
            rank: sorted(mine, key=lambda wait: wait.begin_ns)
            for rank, mine in waits.items()
        }
        self._begins = {
            rank: [wait.begin_ns for wait in mine] for rank, mine in self._waits.items()
        }
        # How far the waits up to each one reach, since some may overlap.
        self._reaches = {
            rank: list(itertools.accumulate((wait.end_ns for wait in mine), max))
            for rank, mine in self._waits.items()
        }

    def parts(self, wait: Wait) -> dict[int, int]:
        """Return how much of a wait each rank is to blame for, in nanoseconds."""
        parts: defaultdict[int, int] = defaultdict(int)
        if wait.awaited != wait.rank:
            span = (wait.begin_ns, wait.end_ns)
            self._charge(wait.awaited, span, (wait.rank, wait.awaited), parts)
        return parts

    def _charge(
        self,
        rank: int,
        span: tuple[int, int],
        seen: tuple[int, ...],
        parts: defaultdict[int, int],
    ) -> None:
        """Charge a span of time to a rank, or to those whom it awaited meanwhile.

        A rank that awaits one that awaits it, if indirectly, only waits for the
        network; it is charged itself.
        """
        at_ns, end_ns = span
        for wait in self._during(rank, at_ns, end_ns):
            low_ns, high_ns = max(at_ns, wait.begin_ns), min(end_ns, wait.end_ns)
            if low_ns >= high_ns or wait.awaited in seen or len(seen) > _PASSES_MAX:
                continue
            parts[rank] += low_ns - at_ns
            further = (*seen, wait.awaited)
            self._charge(wait.awaited, (low_ns, high_ns), further, parts)
            at_ns = high_ns
        parts[rank] += end_ns - at_ns

    def _during(self, rank: int, begin_ns: int, end_ns: int) -> Sequence[Wait]:
        """Return a rank's waits that may overlap a span, by their beginnings."""
        if rank not in self._waits:
            return ()
        first = bisect_right(self._reaches[rank], begin_ns)
        last = bisect_left(self._begins[rank], end_ns)
        return self._waits[rank][first:last]
