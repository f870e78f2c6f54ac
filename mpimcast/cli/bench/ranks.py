# SPDX-License-Identifier: BSD-3-Clause
"""All ranks of a benchmark, none of which continues after one has failed."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, cast

import numpy as np
from mpi4py import MPI

from mpimcast._mpi.agreement import act_on_all
from mpimcast._mpi.completion import complete
from mpimcast._support.printed import wait_until_read
from mpimcast.errors import Error, TimedOut

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

_T = TypeVar("_T")

# The errors of which a rank tells the others; any other is a bug.
_FAILURES = (Error, ImportError, MemoryError, OSError)


class Ranks:
    """All ranks, none of which continues after one has failed.

    Parameters
    ----------
    library
        The MPI library's communicator of all ranks.
    patience_s
        Seconds that a failed rank waits for the others to learn of its failure.

    Attributes
    ----------
    share_clock : bool
        Whether all ranks read one monotonic clock, as those of one machine do.
    """

    def __init__(self, library: MPI.Intracomm, patience_s: float) -> None:
        self.library = library
        self.rank, self.size = library.rank, library.size
        # A failed rank enters the next call on this communicator early, so only
        # `together` may use it.
        self._meeting = library.Dup()
        self._patience_s = patience_s
        self.share_clock = len(set(library.allgather(_clock(self.rank)))) == 1

    def together(
        self, act: Callable[[], _T], values: NDArray[np.float64] | None = None
    ) -> _T:
        """Run `act` on every rank, then make `values` the maxima over all ranks.

        Raises the same Error on all ranks if one of them has failed. If the others do
        not take part in time to learn of the failure, abort the job.
        """
        maxima = np.zeros(1) if values is None else values

        def tell(told: tuple[str, object]) -> list[tuple[str, object]]:
            return self._tell(told, maxima)

        outcome = act_on_all(lambda: (act(), None), tell, _FAILURES)
        if outcome.failures:
            rank, why = min(outcome.failures.items())
            raise Error(f"rank {rank}: {why}")
        return cast("_T", outcome.kept)

    def _tell(
        self, told: tuple[str, object], maxima: NDArray[np.float64]
    ) -> list[tuple[str, object]]:
        """Reduce to maxima, infinite if a rank has failed; only then share failures."""
        failure, _ = told
        if failure:
            maxima.fill(math.inf)
        request = self._meeting.Iallreduce(MPI.IN_PLACE, maxima, MPI.MAX)
        if failure:
            self._await_others(request, failure)
        else:
            request.Wait()
        return self._meeting.allgather(told) if np.isinf(maxima).any() else []

    def _await_others(self, request: MPI.Request, failure: str) -> None:
        """Wait until all ranks know of a failure here; abort if they do not in time."""
        try:
            complete(request, self._patience_s, "reporting a failure")
        except TimedOut:
            complain(f"rank {self.rank}: {failure}")
            wait_until_read()
            self._meeting.Abort(1)


def _clock(rank: int) -> str:
    """Return a text that is equal on ranks which read one monotonic clock."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")
        return boot + str(Path("/proc/self/ns/time").readlink())
    except OSError:
        return str(rank)


def complain(text: str) -> None:
    """Print an error."""
    print(f"mpimcast bench: {text}", file=sys.stderr, flush=True)
