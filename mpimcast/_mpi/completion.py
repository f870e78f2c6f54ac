# SPDX-License-Identifier: BSD-3-Clause
"""Waits for non-blocking MPI calls, up to a deadline."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from mpimcast._mpi import roll
from mpimcast._support.pauses import pause_s
from mpimcast.errors import TimedOut

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mpi4py import MPI

    from mpimcast._mpi.absence import Absence

# The most observed time that one poll adds: it takes longer if the process is stopped
# or the machine is suspended.
_POLL_S_MAX = 0.1
_PAUSE_S_MIN = 20e-6
_PAUSE_S_MAX = 1e-3

# The longest pause while the MPI library moves much data, perhaps in `Test` alone.
_MOVING_PAUSE_S_MAX = 100e-6

# Objects that the MPI library may still use although nobody waits for them any more.
_abandoned: list[object] = []


def abandon(thing: object) -> None:
    """Keep for ever what the MPI library may still read or write."""
    _abandoned.append(thing)


def complete(
    request: MPI.Request,
    limit_s: float,
    what: str,
    *,
    buffers: object = None,
    is_futile: Callable[[], bool] = lambda: False,
    absence: Absence | None = None,
) -> None:
    """Wait for a non-blocking call.

    Parameters
    ----------
    request
        The request to wait for.
    limit_s
        Seconds of observed time after which TimedOut is raised.
    what
        The purpose of the wait, as messages word it.
    buffers
        The memory that the call uses; not every mpi4py request keeps it alive.
    is_futile
        Called before each pause; returns whether to give up waiting.
    absence
        Finds out which ranks are missing; None where that does not matter.
    """
    try:
        for waited_s in _pauses(request, _PAUSE_S_MAX, absence, is_futile):
            if waited_s <= limit_s:
                continue
            text = f"{what}: not all ranks took part within {limit_s:g} s"
            if absence is None:
                raise TimedOut(text)
            error = TimedOut(f"{text}: {absence.reason()}", ranks=absence.missing())
            absence.give_up()
            raise error
    finally:
        if request:
            abandon((request, buffers))


def complete_transfer(
    request: MPI.Request, buffers: object, absence: Absence | None
) -> None:
    """Wait, mostly asleep, for a call that moves much data.

    Parameters
    ----------
    request, buffers, absence
        As for `complete`.

    Raises
    ------
    RankLeft
        If a rank leaves instead of taking part.
    """
    try:
        for _ in _pauses(request, _MOVING_PAUSE_S_MAX, absence):
            pass
    finally:
        if request:
            abandon((request, buffers))


def _pauses(
    request: MPI.Request,
    longest_s: float,
    absence: Absence | None,
    is_futile: Callable[[], bool] = lambda: False,
) -> Iterator[float]:
    """Pause until a request is complete or its wait is futile.

    The MPI library offers nothing to sleep on, so each pause ends with a new test.

    Parameters
    ----------
    longest_s
        The longest pause.
    request, absence, is_futile
        As for `complete`.

    Yields
    ------
    float
        The seconds of observed time so far, after each pause.
    """
    waited_s = 0.0
    now_s = time.monotonic()
    while not (request.Test() or is_futile()):
        time.sleep(pause_s(waited_s, _PAUSE_S_MIN, longest_s))
        before_s, now_s = now_s, time.monotonic()
        waited_s += min(now_s - before_s, _POLL_S_MAX)
        roll.hear_all()
        if absence is not None:
            absence.look()
        yield waited_s
