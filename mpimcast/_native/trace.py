# SPDX-License-Identifier: BSD-3-Clause
"""The trace of this process: the C library's ring of events."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mpimcast._core import ffi, lib
from mpimcast._native.core import check
from mpimcast._support.trace_file import EVENT, LIBRARY, NOBODY

if TYPE_CHECKING:
    from mpimcast._native.calls import AnyStream
    from mpimcast._support.trace_file import Events

# How many events a process keeps: 2.5 MiB of them.
NSLOTS = 1 << 16

_EVENT = ffi.typeof("struct mmc_trace_event *")


class Trace:
    """A ring of the latest events, which lives as long as the process.

    Parameters
    ----------
    nslots
        How many events it holds.

    Attributes
    ----------
    c
        The C object.
    """

    def __init__(self, nslots: int = NSLOTS) -> None:
        made = ffi.new("struct mmc_trace **")
        check(lib.mmc_trace_create(nslots, made), "cannot create a trace")
        self.c = made[0]
        self._nslots = nslots

    def follow(self, stream: AnyStream, track: int) -> None:
        """Trace a stream's operations from the next one on, as `track`."""
        status = stream.calls.set_trace(stream.c, self.c, track)
        check(status, "cannot trace a stream")

    def add_library(
        self, track: int, kind: int, nbytes: int, begin_ns: int, end_ns: int
    ) -> None:
        """Add an operation of the MPI library.

        Parameters
        ----------
        track
            The communicator's track for such operations.
        kind
            As in `trace_file.OPERATIONS`.
        nbytes
            The bytes of a block.
        begin_ns, end_ns
            When it began and ended, by ``time.monotonic_ns()``.
        """
        event = (begin_ns, end_ns, nbytes, 0, NOBODY, 0, track, LIBRARY, kind)
        lib.mmc_trace_add(self.c, ffi.new(_EVENT, event))

    def read(self) -> tuple[Events, int]:
        """Return the events from the oldest on, and how many were ever added."""
        nadded = ffi.new("uint64_t *")
        events = np.zeros(self._nslots, EVENT)
        place = ffi.from_buffer("struct mmc_trace_event[]", events, True)  # noqa: FBT003 -- cffi's way
        n = lib.mmc_trace_read(self.c, place, nadded)
        return events[:n], int(nadded[0])
