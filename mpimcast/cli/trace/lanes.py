# SPDX-License-Identifier: BSD-3-Clause
"""Lays out operations in threads, in none of which one overlaps another."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from mpimcast._support.trace_file import LIBRARY, OPERATION

if TYPE_CHECKING:
    from mpimcast._support.trace_file import Events

# The most threads of a stream that show operations.
LANES_MAX = 12


class Operations(NamedTuple):
    """The operations of one stream, by their beginnings.

    Attributes
    ----------
    operations : array
        The events.
    lanes : list of int
        The thread that each is shown in. In a thread none overlaps another.
    """

    operations: Events
    lanes: list[int]


def laid_out(events: Events, track: int) -> Operations:
    """Return the operations of a stream, and the threads that have room for them.

    Operations that find no free thread, because too many overlap, are left out.
    """
    kinds = (events["kind"] == OPERATION) | (events["kind"] == LIBRARY)
    found = events[kinds & (events["track"] == track)]
    found = found[np.argsort(found["begin_ns"], kind="stable")]
    ends = [0] * LANES_MAX
    lanes = []
    for begin_ns, end_ns in found[["begin_ns", "end_ns"]].tolist():
        lane = next((n for n, end in enumerate(ends) if end <= begin_ns), -1)
        if lane >= 0:
            ends[lane] = end_ns
        lanes.append(lane)
    return Operations(found, lanes)
