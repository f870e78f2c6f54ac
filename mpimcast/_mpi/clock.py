# SPDX-License-Identifier: BSD-3-Clause
"""Measures how far the clocks of ranks are apart.

Ranks form a binomial tree below rank 0. Each asks its parent for the time, several
times, and learns how far the parent is from rank 0 with the answers. So P ranks take
as long as ceil(log2 P) of them would one after the other. If an answer took a time T
altogether, the parent looked at its clock within that time, and the middle is wrong by
T / 2 at most, whatever part of T each way took. The fastest answer counts; the errors
on the way to rank 0 add up.
"""

from __future__ import annotations

import os
import struct
import time
from typing import TYPE_CHECKING, NamedTuple

from mpi4py import MPI

from mpimcast._mpi import roll
from mpimcast._mpi.completion import abandon
from mpimcast.errors import TimedOut

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

# How often a rank asks its parent.
ROUNDS = 32

# The parent's time, how far it is behind rank 0, and by how much that may be wrong.
_ANSWER = struct.Struct("=3q")

# The tag of these messages: `private` and `roll` have 0 to 2.
_TAG = 3

# After so long a rank that waits sleeps between its looks, and answers others.
_SPIN_NS = 1_000_000
_PAUSE_S = 0.0002


class Sample(NamedTuple):
    """One question to another rank, and its answer; times by this rank's clock.

    Attributes
    ----------
    asked_ns : int
        When the question was sent.
    theirs_ns : int
        The other rank's time, by its own clock.
    answered_ns : int
        When the answer arrived.
    """

    asked_ns: int
    theirs_ns: int
    answered_ns: int


def estimate(samples: Sequence[Sample]) -> tuple[int, int]:
    """Return how far this rank's clock is behind the other's, and the greatest error.

    Parameters
    ----------
    samples
        At least one; the one with the fastest answer counts.
    """
    best = min(samples, key=lambda each: each.answered_ns - each.asked_ns)
    trip_ns = best.answered_ns - best.asked_ns
    offset_ns = best.theirs_ns - best.asked_ns - trip_ns // 2
    return offset_ns, (trip_ns + 1) // 2


def measure(
    private: MPI.Intracomm,
    limit_s: float,
    now_ns: Callable[[], int] = time.monotonic_ns,
) -> tuple[int, int]:
    """Measure how far this rank's clock is behind rank 0's. Collective.

    Parameters
    ----------
    private
        The communicator of the ranks.
    limit_s
        Seconds for which a rank waits for another before TimedOut is raised.
    now_ns
        The clock.

    Returns
    -------
    offset_ns : int
        What is to be added to this rank's times to get rank 0's.
    error_ns : int
        The greatest possible error of that.
    """
    rank, size = private.Get_rank(), private.Get_size()
    offset_ns = error_ns = 0
    lowest = rank & -rank or 1 << size.bit_length()
    if rank != 0:
        offset_ns, error_ns = _ask(private, rank - lowest, limit_s, now_ns)
    step = lowest >> 1
    while step:
        if rank + step < size:
            _answer(private, rank + step, limit_s, (now_ns, offset_ns, error_ns))
        step >>= 1
    return offset_ns, error_ns


def _ask(
    private: MPI.Intracomm, parent: int, limit_s: float, now_ns: Callable[[], int]
) -> tuple[int, int]:
    samples = []
    theirs = (0, 0, 0)
    for _ in range(ROUNDS):
        place = bytearray(_ANSWER.size)
        coming = private.Irecv([place, MPI.BYTE], parent, _TAG)
        asked_ns = now_ns()
        going = private.Isend([b"", MPI.BYTE], parent, _TAG)
        _wait(coming, parent, limit_s, place)
        answered_ns = now_ns()
        _wait(going, parent, limit_s, None)
        theirs = _ANSWER.unpack(place)
        samples.append(Sample(asked_ns, theirs[0], answered_ns))
    offset_ns, error_ns = estimate(samples)
    return offset_ns + theirs[1], error_ns + theirs[2]


def _answer(
    private: MPI.Intracomm,
    child: int,
    limit_s: float,
    own: tuple[Callable[[], int], int, int],
) -> None:
    """Answer the questions of a child. `own` is this rank's clock and its distance."""
    now_ns, offset_ns, error_ns = own
    for _ in range(ROUNDS):
        empty = bytearray(1)
        coming = private.Irecv([empty, 0, MPI.BYTE], child, _TAG)
        _wait(coming, child, limit_s, empty)
        answer = _ANSWER.pack(now_ns(), offset_ns, error_ns)
        going = private.Isend([answer, MPI.BYTE], child, _TAG)
        _wait(going, child, limit_s, answer)


def _wait(request: MPI.Request, peer: int, limit_s: float, buffer: object) -> None:
    """Wait for a message to or from `peer`, without pauses that would spoil times."""
    begin_ns = time.monotonic_ns()
    try:
        while not request.Test():
            os.sched_yield()  # the other rank may need this processor
            waited_ns = time.monotonic_ns() - begin_ns
            if waited_ns > _SPIN_NS:
                time.sleep(_PAUSE_S)
                roll.hear_all()
            if waited_ns > limit_s * 1e9:
                raise TimedOut(
                    f"measuring clocks: rank {peer} did not take part within "
                    f"{limit_s:g} s",
                    ranks=(peer,),
                )
    finally:
        if request:
            abandon((request, buffer))
