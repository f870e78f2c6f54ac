# SPDX-License-Identifier: BSD-3-Clause
"""Timing a collective on all ranks, ours and the MPI library's in turn."""

from __future__ import annotations

import contextlib
import math
import statistics
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from mpi4py import MPI

from mpimcast.agreement import complete
from mpimcast.errors import Error, TimedOut

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from mpimcast.comm import Intracomm

# Whose operation it is, by the names that reports use.
WAYS = ("mpimcast", "mpi")

_SENT = ("tx_multicast_bytes", "tx_repair_bytes", "tx_control_bytes")
_SEED = 20241117
_SPAN = 1 << 16


@dataclass(frozen=True)
class Plan:
    """How to measure."""

    iterations: int
    warmup: int
    in_place: bool
    verify: bool
    pre_barrier: bool

    @property
    def nsteps(self) -> int:
        """Return how many operations there are in all, of both ways."""
        return len(WAYS) * (self.warmup + self.iterations)

    @property
    def first_counted(self) -> int:
        """Return the number of the first operation after the warm-up."""
        return len(WAYS) * self.warmup

    def way(self, step: int) -> int:
        """Return whose operation number `step` is: they alternate in beginning."""
        return (step + step // 2) % 2


# ---- all ranks ---------------------------------------------------------------


class Ranks:
    """All ranks; nobody goes on where one has failed.

    Parameters
    ----------
    library
        The MPI library's communicator of all ranks.
    patience_s
        Seconds that a rank which has failed waits for the others to hear of it.
    """

    def __init__(self, library: MPI.Intracomm, patience_s: float) -> None:
        self.library = library
        self.rank, self.size = library.rank, library.size
        # A rank that has failed comes here before its time: no other call may wait
        # on this communicator.
        self._meeting = library.Dup()
        self._patience_s = patience_s

    @contextlib.contextmanager
    def together(self, seconds: NDArray[np.float64] | None = None) -> Iterator[None]:
        """Let every rank do the same, then make `seconds` the maxima over all ranks.

        Raises the same Error on all ranks if one of them has failed. Where the
        others do not come to hear of it, the job is aborted.
        """
        maxima = np.zeros(1) if seconds is None else seconds
        failure = ""
        try:
            yield
        except (Error, ImportError, MemoryError, OSError) as error:
            failure = str(error) or type(error).__name__
            maxima.fill(math.inf)
        request = self._meeting.Iallreduce(MPI.IN_PLACE, maxima, MPI.MAX)
        if failure:
            self._tell(request, failure)
        else:
            request.Wait()
        if np.isinf(maxima).any():
            failures = self._meeting.allgather(failure)
            first = next(rank for rank, text in enumerate(failures) if text)
            raise Error(f"rank {first}: {failures[first]}")

    def _tell(self, request: MPI.Request, failure: str) -> None:
        try:
            complete(request, self._patience_s, "telling of a failure")
        except TimedOut:
            complain(f"rank {self.rank}: {failure}")
            self._meeting.Abort(1)


def complain(text: str) -> None:
    """Print an error."""
    print(f"mpimcast bench: {text}", file=sys.stderr, flush=True)


# ---- what is measured --------------------------------------------------------


class Pattern:
    """What ranks contribute: in every step other bytes at every place.

    So no byte that an earlier operation left there can be taken for a right one.
    """

    def __init__(self, nbytes: int) -> None:
        random = np.random.Generator(np.random.PCG64(_SEED))
        self._base = random.integers(0, 256, nbytes + _SPAN, np.uint8)
        self._scratch = np.empty(nbytes, np.uint8)

    def write(self, rank: int, step: int, block: NDArray[np.uint8]) -> None:
        """Write the block of `rank` in `step`."""
        begin = rank * 40503 % _SPAN  # far apart, at odd distances
        base = self._base[begin : begin + block.size]
        np.add(base, np.uint8(step % 256), out=block)

    def wrong_bytes(self, rank: int, step: int, block: NDArray[np.uint8]) -> int:
        """Return how many bytes of the block are not those of `rank` in `step`."""
        self.write(rank, step, self._scratch)
        return int(np.count_nonzero(self._scratch != block))


class _Allgather:
    """The buffers of Allgathers, one after the other, and what must be in them."""

    def __init__(self, ranks: Ranks, nbytes: int, *, in_place: bool) -> None:
        self._rank = ranks.rank
        self._pattern = Pattern(nbytes)
        self._recv = np.empty((ranks.size, nbytes), np.uint8)
        self._own = self._recv[ranks.rank] if in_place else np.empty(nbytes, np.uint8)
        self._send = MPI.IN_PLACE if in_place else self._own
        for rank, block in enumerate(self._recv):
            self._pattern.write(rank, -1, block)
        self.unicast_bytes = nbytes * (ranks.size - 1)
        self.prepare(0)

    def prepare(self, step: int) -> None:
        """Write what this rank contributes to operation number `step`."""
        self._pattern.write(self._rank, step, self._own)

    def run(self, comm: MPI.Intracomm) -> None:
        """Do the operation."""
        comm.Allgather(self._send, self._recv)

    def wrong_bytes(self, step: int) -> int:
        """Return how many bytes are not what operation number `step` gives."""
        return sum(
            self._pattern.wrong_bytes(rank, step, block)
            for rank, block in enumerate(self._recv)
        )


# ---- measuring ---------------------------------------------------------------


def measure(
    ranks: Ranks,
    comm: Intracomm,
    plan: Plan,
    nbytes: int,
    advance: Callable[[int, str], None],
) -> dict[str, Any]:
    """Measure Allgathers of one size, ours on `comm`. Collective.

    The two ways take turns, and so does who of them begins. Calls `advance` with
    size and name of each operation that is over. Returns what was found, in terms of
    JSON, equal on all ranks.
    """
    measurement = _Measurement(ranks, comm, plan, nbytes)
    measurement.run(advance)
    return measurement.report()


class _Measurement:
    def __init__(self, ranks: Ranks, comm: Intracomm, plan: Plan, nbytes: int) -> None:
        self._ranks = ranks
        self._comm = comm
        self._plan = plan
        self._nbytes = nbytes
        self._seconds = np.zeros(plan.nsteps)
        self._wrong_bytes = [0] * len(WAYS)
        self._before: dict[str, int] = {}
        with ranks.together():
            self._data = _Allgather(ranks, nbytes, in_place=plan.in_place)

    def run(self, advance: Callable[[int, str], None]) -> None:
        """Do all operations."""
        # Without the barrier nothing else may keep the ranks in step either.
        stride = 1 if self._plan.pre_barrier else self._plan.nsteps
        for begin in range(0, self._plan.nsteps, stride):
            with self._ranks.together(self._seconds[begin : begin + stride]):
                for step in range(begin, begin + stride):
                    self._operate(step)
                    advance(self._nbytes, str(self._nbytes))

    def _operate(self, step: int) -> None:
        library = self._ranks.library
        way = self._plan.way(step)
        if step == self._plan.first_counted:
            self._before = self._comm.stats()
        if self._plan.verify:
            self._data.prepare(step)
        if self._plan.pre_barrier:
            library.Barrier()
        begin_s = time.perf_counter()
        self._data.run(library if way else self._comm)
        self._seconds[step] = time.perf_counter() - begin_s
        if self._plan.verify:
            self._wrong_bytes[way] += self._data.wrong_bytes(step)

    def report(self) -> dict[str, Any]:
        """Return what was found."""
        path = self._comm.explain(self._nbytes)
        ours, theirs = (self._report_way(way) for way in range(len(WAYS)))
        counters = self._counters()
        if path.path != "mpi":
            sent_bytes = sum(each[name] for each in counters for name in _SENT)
            operations = self._ranks.size * self._plan.iterations
            ours["sent_bytes_per_rank"] = sent_bytes / operations
            ours["computed"] = []
        return {
            "block_bytes": self._nbytes,
            "total_bytes": self._nbytes * self._ranks.size,
            "path": path.path,
            "reason": path.reason,
            "ratio": theirs["median_s"] / ours["median_s"],
            **dict(zip(WAYS, (ours, theirs), strict=True)),
            "counters": counters,
        }

    def _report_way(self, way: int) -> dict[str, Any]:
        steps = range(self._plan.first_counted, self._plan.nsteps)
        seconds = [
            float(self._seconds[step]) for step in steps if self._plan.way(step) == way
        ]
        return {
            "seconds": seconds,
            "min_s": min(seconds),
            "median_s": statistics.median(seconds),
            "p99_s": percentile(seconds, 99),
            "wrong_bytes": self._ranks.library.allreduce(self._wrong_bytes[way]),
            "sent_bytes_per_rank": self._data.unicast_bytes,
            "computed": ["sent_bytes_per_rank"],
        }

    def _counters(self) -> list[dict[str, int]]:
        """Return what every rank has counted since the warm-up."""
        before, after = self._before, self._comm.stats()
        return self._ranks.library.allgather(
            {name: after[name] - before[name] for name in after}
        )


def percentile(values: Sequence[float], percent: int) -> float:
    """Return the least of `values` that at least so many percent do not exceed."""
    count = -(-len(values) * percent // 100)
    return sorted(values)[max(count, 1) - 1]
