# SPDX-License-Identifier: BSD-3-Clause
"""Times a collective on all ranks, mpimcast's and the MPI library's in turn."""

from __future__ import annotations

import resource
import statistics
import time
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from mpimcast.cli.bench.workload import workload

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from mpimcast.cli.bench.ranks import Ranks
    from mpimcast.comm import Intracomm

# The libraries that are compared, by their names in reports.
WAYS = ("mpimcast", "mpi")

# The timed parts of a non-blocking collective's step: the operation alone, a
# computation alone, and both at once. A blocking collective has the first part only.
PARTS = ("operation", "computation", "both")

_SENT = ("tx_multicast_bytes", "tx_repair_bytes", "tx_control_bytes")


@dataclass(frozen=True)
class Plan:
    """How to measure.

    Attributes
    ----------
    root : int or None
        The root of collectives that have one; None: each rank in turn.
    gap_s : float
        The time that ranks idle before each operation.
    """

    iterations: int
    warmup: int
    in_place: bool
    root: int | None
    verify: bool
    pre_barrier: bool
    gap_s: float

    @property
    def nsteps(self) -> int:
        """The number of steps in all, of both libraries."""
        return len(WAYS) * (self.warmup + self.iterations)

    @property
    def first_counted(self) -> int:
        """The number of the first step after the warm-up."""
        return len(WAYS) * self.warmup

    def way(self, step: int) -> int:
        """Return the index in WAYS of a step; the order swaps from pair to pair."""
        return (step + step // 2) % 2


# ---- processors --------------------------------------------------------------


def processor_s() -> float:
    """Return the processor time that this process has used."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


class Computation:
    """Work for a processor, in equal units of some microseconds.

    The amount of work is fixed, not the time: whatever else uses the processor makes
    it take longer, as it would a program's own computation.
    """

    def __init__(self) -> None:
        self._numbers = np.ones(4096)
        self._unit_s = min(self._timed(100) for _ in range(5)) / 100

    def units(self, seconds: float) -> int:
        """Return how many units take `seconds` if undisturbed."""
        return max(1, round(seconds / self._unit_s))

    def run(self, units: int) -> None:
        """Compute a number of units."""
        for _ in range(units):
            np.multiply(self._numbers, 1.0, out=self._numbers)

    def _timed(self, units: int) -> float:
        begin_s = time.monotonic()
        self.run(units)
        return time.monotonic() - begin_s


# ---- measuring ---------------------------------------------------------------


def measure(
    ranks: Ranks,
    comm: Intracomm,
    plan: Plan,
    collective: str,
    nbytes: int,
    *,
    advance: Callable[[int, str], None],
) -> dict[str, Any]:
    """Measure a collective with blocks of one size, mpimcast's on `comm`. Collective.

    The two libraries take turns, and alternate in which begins. Calls `advance` with
    the size and name of each operation that has ended. Returns the results, fit for
    JSON and equal on all ranks.
    """
    measurement = _Measurement(ranks, comm, plan, collective, nbytes)
    measurement.run(advance)
    return measurement.report()


class _Measurement:
    def __init__(
        self, ranks: Ranks, comm: Intracomm, plan: Plan, collective: str, nbytes: int
    ) -> None:
        self._ranks = ranks
        self._comm = comm
        self._plan = plan
        self._collective = collective
        self._nbytes = nbytes
        self._blocks = not collective.startswith("I")
        self._nparts = 1 if self._blocks else len(PARTS)
        # The times at which each part of each step began and ended, in seconds. Unless
        # ranks share a clock, they count from when this rank began the part.
        self._times = np.zeros((plan.nsteps, self._nparts, 2))
        self._rank_s = np.zeros(plan.nsteps)  # the operation's time on this rank alone
        self._processor_s = np.zeros(plan.nsteps)
        self._wrong_bytes = [0] * len(WAYS)
        self._before: dict[str, int] = {}
        ranks.together(self._prepare)

    def _prepare(self) -> None:
        """Make the buffers, and open the transport."""
        name = self._collective
        self._work = workload(
            name if self._blocks else name[1:].capitalize(),
            self._ranks.library,
            self._nbytes,
            in_place=self._plan.in_place,
            root=self._plan.root,
        )
        self._computation = Computation()
        if not self._blocks:
            # Only a blocking collective opens a transport.
            self._work.run(self._comm)

    def run(self, advance: Callable[[int, str], None]) -> None:
        """Run all operations."""
        # Without the barrier, `together` must not keep the ranks in step either.
        stride = 1 if self._plan.pre_barrier else self._plan.nsteps
        for begin in range(0, self._plan.nsteps, stride):
            steps = range(begin, begin + stride)
            self._ranks.together(
                partial(self._run, steps, advance), self._times[begin : begin + stride]
            )

    def _run(self, steps: range, advance: Callable[[int, str], None]) -> None:
        """Run some operations."""
        for step in steps:
            self._step(step)
            advance(self._nbytes, f"{self._collective} {self._nbytes}")

    def _step(self, step: int) -> None:
        way = self._plan.way(step)
        comm = self._ranks.library if way else self._comm
        work, compute = self._work, self._computation.run
        if step == self._plan.first_counted:
            self._before = self._comm.stats()
        used_s = processor_s()
        if self._blocks:
            self._time(step, 0, lambda: work.run(comm))
        else:
            self._time(step, 0, lambda: work.start(comm).Wait())
        self._processor_s[step] = processor_s() - used_s
        if self._blocks:
            return
        begin_s, end_s = self._times[step, 0]
        units = self._computation.units(end_s - begin_s)

        def both() -> None:
            request = work.start(comm)
            compute(units)
            request.Wait()

        self._time(step, 1, lambda: compute(units))
        self._time(step, 2, both)

    def _time(self, step: int, part: int, act: Callable[[], object]) -> None:
        plan, work = self._plan, self._work
        moves = PARTS[part] != "computation"
        work.turn_to(self._nparts * step + part, step // len(WAYS))
        if plan.verify and moves:
            work.fill()
        if plan.pre_barrier:
            self._ranks.library.Barrier()
        if plan.gap_s:
            time.sleep(plan.gap_s)
        begin_s = time.monotonic()
        act()
        end_s = time.monotonic()
        origin_s = 0.0 if self._ranks.share_clock else begin_s
        self._times[step, part] = begin_s - origin_s, end_s - origin_s
        if part == 0:
            self._rank_s[step] = end_s - begin_s
        if plan.verify and moves:
            self._wrong_bytes[plan.way(step)] += work.wrong_bytes()

    def report(self) -> dict[str, Any]:
        """Return the results."""
        ours, theirs = (self._report_way(way) for way in range(len(WAYS)))
        counters = self._counters()
        path, reason = self._path(counters)
        if path != "mpi":
            operations = self._plan.iterations * (1 if self._blocks else 2)
            sent = [sum(each[name] for name in _SENT) / operations for each in counters]
            root = None if self._work.root_unicast_bytes is None else self._plan.root
            ours |= _sent(sum(sent), None if root is None else sent[root], len(sent))
            ours["computed"] = []
        return {
            "collective": self._collective,
            "block_bytes": self._nbytes,
            "total_bytes": self._work.total_bytes,
            "path": path,
            "reason": reason,
            "ratio": theirs["median_s"] / ours["median_s"],
            **dict(zip(WAYS, (ours, theirs), strict=True)),
            "counters": counters,
        }

    def _path(self, counters: Sequence[dict[str, int]]) -> tuple[str, str]:
        """Return what carried mpimcast's operations, and why, by its counters."""
        explained = self._comm.explain(self._nbytes)
        if explained.path != "mpi" and not any(
            each["epochs"] + each["node_operations"] for each in counters
        ):
            return "mpi", f"{self._collective} is not ours here"
        return explained.path, explained.reason

    def _report_way(self, way: int) -> dict[str, Any]:
        mine = [
            step
            for step in range(self._plan.first_counted, self._plan.nsteps)
            if self._plan.way(step) == way
        ]
        times = self._times[mine, :, 1] - self._times[mine, :, 0]
        seconds = times[:, 0].tolist()
        median_s = statistics.median(seconds)
        algorithm_bandwidth = self._work.total_bytes / median_s
        library, work = self._ranks.library, self._work
        nranks = self._ranks.size
        sent = _sent(work.unicast_bytes * nranks, work.root_unicast_bytes, nranks)
        return {
            "seconds": seconds,
            "rank_seconds": library.allgather(float(np.median(self._rank_s[mine]))),
            "min_s": min(seconds),
            "median_s": median_s,
            "p99_s": percentile(seconds, 99),
            "algbw_bytes_per_s": algorithm_bandwidth,
            "busbw_bytes_per_s": algorithm_bandwidth * self._work.bus_part,
            "processor_seconds": library.allreduce(self._processor_s)[mine].tolist(),
            "wrong_bytes": library.allreduce(self._wrong_bytes[way]),
            **sent,
            "computed": list(sent),
            **({} if self._blocks else _overlap(times)),
        }

    def _counters(self) -> list[dict[str, int]]:
        """Return every rank's counters since the warm-up."""
        before, after = self._before, self._comm.stats()
        return self._ranks.library.allgather(
            {name: after[name] - before[name] for name in after}
        )


def _sent(
    total_bytes: float, root_bytes: float | None, nranks: int
) -> dict[str, float]:
    """Return the bytes that ranks send in an operation, as a mean of all ranks.

    With a fixed root, whose bytes are `root_bytes`, also return the root's bytes and
    the mean of the others.
    """
    sent = {"sent_bytes_per_rank": total_bytes / nranks}
    if root_bytes is not None:
        others = max(1, nranks - 1)
        sent["sent_bytes_root"] = root_bytes
        sent["sent_bytes_per_other_rank"] = (total_bytes - root_bytes) / others
    return sent


def _overlap(times: NDArray[np.float64]) -> dict[str, Any]:
    """Return the share of an operation hidden behind computation, as OSU counts it."""
    operation, computation, both = times.T
    hidden = 100 * (1 - (both - computation) / operation)
    return {
        "computation_seconds": computation.tolist(),
        "both_seconds": both.tolist(),
        "overlap_percent": float(np.clip(np.median(hidden), 0, 100)),
    }


def percentile(values: Sequence[float], percent: int) -> float:
    """Return the least of `values` that at least `percent` % of them do not exceed."""
    count = -(-len(values) * percent // 100)
    return sorted(values)[max(count, 1) - 1]
