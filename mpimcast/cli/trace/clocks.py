# SPDX-License-Identifier: BSD-3-Clause
"""Puts the times of all processes on the clock of one of them."""

from __future__ import annotations

import heapq
import itertools
from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mpimcast._support.trace_file import Header, Process


class Shift(NamedTuple):
    """How to put a process's times on the common clock.

    Attributes
    ----------
    shift_ns : int
        What is to be added to them.
    error_ns : int or None
        By how much that may be wrong; None if the clocks were never compared, so that
        those of the hosts, as NTP sets them, have to do.
    """

    shift_ns: int
    error_ns: int | None


def align(headers: Sequence[Header]) -> list[Shift]:
    """Return the shift of each process to the clock of the first.

    Clocks were compared in pairs. Of the ways from one process to another over such
    pairs, the one counts on which the errors add up to the least.
    """
    if not headers:
        return []
    edges: defaultdict[Process, list[tuple[Process, int, int]]] = defaultdict(list)
    for header in headers:
        for offset in header.offsets:
            mine, error_ns = header.process, max(0, offset.error_ns)
            edges[mine].append((offset.peer, -offset.offset_ns, error_ns))
            edges[offset.peer].append((mine, offset.offset_ns, error_ns))
    first = headers[0]
    found: dict[Process, Shift] = {}
    # The numbers differ, so that processes, which have no order, are not compared.
    numbers = itertools.count()
    waiting = [(0, next(numbers), 0, first.process)]
    while waiting:
        error_ns, _, shift_ns, process = heapq.heappop(waiting)
        if process in found:
            continue
        found[process] = Shift(shift_ns, error_ns)
        for other, more_ns, more_error_ns in edges[process]:
            if other not in found:
                step = (error_ns + more_error_ns, next(numbers), shift_ns + more_ns)
                heapq.heappush(waiting, (*step, other))
    return [
        found.get(each.process, Shift(each.ahead_ns - first.ahead_ns, None))
        for each in headers
    ]
