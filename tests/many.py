# SPDX-License-Identifier: BSD-3-Clause
"""One rank of a job that opens 200 communicators at once, then others one by one.

The argument is the number of communicators to open, use and free one by one. The rank
fails if descriptors, threads, multicast groups or memory are not given back. The kernel
counts groups for a whole network namespace, so the job must have one of its own. Rank 0
prints times and memory.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from mpi4py import MPI

import mpimcast

NALIVE = 200
COUNT = 40  # items of a block
# The most by which the resident memory may grow in the second half of the turns:
# allocators keep some of the memory that was freed.
GROWTH_MAX_KIB = 768
# Descriptors that may stay open after the last turn: a process leaves the groups of a
# team some seconds after their last use.
LINGERING_MAX = 64


class Gathering:
    """The buffers of an Allgather whose data depends on a salt."""

    def __init__(self, comm: MPI.Intracomm, salt: int) -> None:
        self.block = np.full(COUNT, comm.rank + 10 * salt)
        self.place = np.zeros((comm.size, COUNT), int)
        self._expected = np.arange(comm.size)[:, None] + 10 * salt

    def check(self) -> None:
        """Assert that all blocks have arrived, and that each is in its place."""
        assert (self.place == self._expected).all()


def taken() -> tuple[int, int, int]:
    """Return the number of descriptors, of threads, and of multicast groups joined.

    The groups are those of all processes of the network namespace.
    """
    # /proc/net/igmp indents a group's line by these tabs, but not an interface's line.
    joined = Path("/proc/net/igmp").read_text().count("\n\t\t\t\t")
    descriptors = len(list(Path("/proc/self/fd").iterdir()))
    return descriptors, len(list(Path("/proc/self/task").iterdir())), joined


def resident_kib() -> int:
    """Return the resident memory of this process, in KiB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGESIZE") >> 10


def gather(comm: MPI.Intracomm, salt: int) -> None:
    """Gather by a blocking call, by a request and by a persistent request."""
    gathering = Gathering(comm, salt)
    comm.Allgather(gathering.block, gathering.place)
    gathering.check()
    gathering.place.fill(-1)
    comm.Iallgather(gathering.block, gathering.place).Wait()
    gathering.check()
    gathering.place.fill(-1)
    request = comm.Allgather_init(gathering.block, gathering.place)
    request.Start()
    request.Wait()
    request.Free()
    gathering.check()


def keep_many(comm: mpimcast.Intracomm) -> str:
    """Keep NALIVE duplicates of a communicator, and gather on all at the same time.

    The duplicates share its team, so they take no descriptors, threads or groups.
    Return a line that says how long they took to open.
    """
    before = taken()
    comms = [comm.Dup() for _ in range(NALIVE)]
    begin_s = time.monotonic()
    for each in comms:
        each.Allgather(np.zeros(1), np.zeros(comm.size))
    took_s = time.monotonic() - begin_s
    gatherings = [Gathering(comm, salt) for salt in range(NALIVE)]
    # Each rank starts its operations in an order of its own.
    order = np.random.default_rng(comm.rank).permutation(NALIVE)
    requests = {
        number: comms[number].Iallgather(
            gatherings[number].block, gatherings[number].place
        )
        for number in map(int, order)
    }
    for number, request in sorted(requests.items()):
        request.Wait()
        gatherings[number].check()
    assert taken() == before, (taken(), before)
    opening_ns = sum(each.stats()["open_ns"] for each in comms)
    assert 0 < opening_ns < took_s * 1e9
    for each in comms:
        each.Free()
    assert taken() == before, (taken(), before)
    return f"{NALIVE} communicators, {took_s / NALIVE * 1e3:.1f} ms to open one"


def come_and_go(
    make: Callable[[], MPI.Intracomm], nturns: int, lingering_max: int
) -> str:
    """Make, use and free a communicator `nturns` times; return a line on its cost.

    At most `lingering_max` descriptors may remain. If it is 0, no group may remain.
    """
    before, halfway_kib = taken(), 0
    begin_s = time.monotonic()
    for turn in range(nturns):
        if turn == nturns // 2:
            halfway_kib = resident_kib()
        derived = make()
        gather(derived, turn)
        derived.Free()
    took_s = time.monotonic() - begin_s
    growth_kib = resident_kib() - halfway_kib
    assert growth_kib <= GROWTH_MAX_KIB, growth_kib
    descriptors, threads, _ = taken()
    assert descriptors - before[0] <= lingering_max, (taken(), before)
    assert threads == before[1], (taken(), before)
    if lingering_max == 0:
        assert taken() == before, (taken(), before)
    return (
        f"{nturns} times {took_s / nturns * 1e3:.1f} ms, {growth_kib} KiB more memory "
        f"in the second half"
    )


def main(nturns: int) -> None:
    """Run one rank: many communicators at once, then `nturns` one by one."""
    world = MPI.Intracomm(MPI.COMM_WORLD)
    _, threads, _ = taken()
    comm = mpimcast.Intracomm(world.Dup(), transport="udp", min_bytes=0)
    gather(comm, 0)
    world.Barrier()
    lines = [
        keep_many(comm),
        f"ranks in the same order: {come_and_go(comm.Dup, nturns, 0)}",
        # The same ranks in another order form another team, with its own sockets and
        # groups.
        "ranks in another order: "
        + come_and_go(lambda: comm.Split(0, -comm.rank), nturns // 5, LINGERING_MAX),
    ]
    world.Barrier()
    if world.rank == 0:
        print(*lines, sep="\n")
    comm.Free()
    assert taken()[1] == threads


if __name__ == "__main__":
    main(int(sys.argv[1]))
