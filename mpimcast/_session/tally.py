# SPDX-License-Identifier: BSD-3-Clause
"""Counts a communicator's collectives, and the time in them, by what carried them."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mpimcast._small import Express, Limits

# The names in stats() of what is counted.
COUNTERS = ("calls_ours", "calls_ours_ns", "calls_mpi", "calls_mpi_ns", "calls_small")


class Tally:
    """The blocking calls that mpimcast has looked at, by what carried them.

    Trials are counted elsewhere (choice.py).

    Parameters
    ----------
    limits
        Count the calls that are the MPI library's by their size alone. To time them
        would cost a good part of what they take.
    express
        Counts the calls that take the express way.
    """

    def __init__(self, limits: Sequence[Limits], express: Express) -> None:
        self._limits = limits
        self._express = express
        self._ncalls = {True: 0, False: 0}
        self._spent_ns = {True: 0, False: 0}

    def count(
        self,
        kind: Callable[..., Any],  # noqa: ARG002 -- for those who trace
        arguments: tuple[Any, ...],  # noqa: ARG002
        *,
        ours: bool,
        begin_ns: int,
    ) -> None:
        """Count a call of a kind of collective; it began at `begin_ns` and ends now."""
        self._ncalls[ours] += 1
        self._spent_ns[ours] += time.monotonic_ns() - begin_ns

    def add_library(self, name: str, nbytes: int, begin_ns: int) -> None:
        """Trace an operation that the MPI library has carried; nothing without TRACE.

        Parameters
        ----------
        name
            As in `trace_file.OPERATIONS`.
        nbytes
            The bytes of a block.
        begin_ns
            When it began, by ``time.monotonic_ns()``.
        """

    def counters(self) -> dict[str, int]:
        """Return what was counted, by COUNTERS."""
        small = sum(each.nsmall() for each in self._limits)
        ordinary = (
            *(self._ncalls[True], self._spent_ns[True]),
            *(self._ncalls[False], self._spent_ns[False]),
        )
        sums = map(sum, zip(ordinary, self._express.counts(), strict=True))
        return dict(zip(COUNTERS, (*sums, small), strict=True))
