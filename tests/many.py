# SPDX-License-Identifier: BSD-3-Clause
"""One rank of a job with many communicators: 200 alive at once, then one by one.

The argument is the number of communicators opened one by one. Descriptors, threads and
groups are counted, the groups for the whole network, which must therefore be a
namespace of its own. Rank 0 prints times and memory.
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

ALIVE = 200
COUNT = 40  # items of a block
# Memory that the allocators may take in all, and reuse later.
SLACK_KIB = 768
# Groups in which a process remains for some seconds after their last use.
LINGERING_MAX = 64


class Gathering:
    """An Allgather whose data depends on a salt."""

    def __init__(self, comm: MPI.Intracomm, salt: int) -> None:
        self.block = np.full(COUNT, comm.rank + 10 * salt)
        self.place = np.zeros((comm.size, COUNT), int)
        self._truth = np.arange(comm.size)[:, None] + 10 * salt

    def check(self) -> None:
        """Assert that all blocks have arrived."""
        assert (self.place == self._truth).all()


def taken() -> tuple[int, int, int]:
    """Count this process's descriptors and threads, and the network's joined groups."""
    # /proc/net/igmp has one line with this indentation for each group.
    joined = Path("/proc/net/igmp").read_text().count("\n\t\t\t\t")
    descriptors = len(list(Path("/proc/self/fd").iterdir()))
    return descriptors, len(list(Path("/proc/self/task").iterdir())), joined


def resident_kib() -> int:
    """Return the resident memory of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGESIZE") >> 10


def gather(comm: MPI.Intracomm, salt: int) -> None:
    """Gather in each of the three ways: blocking, nonblocking and persistent."""
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


def live(comm: mpimcast.Intracomm) -> str:
    """Open many communicators at once, with an operation in flight on each."""
    before = taken()
    comms = [comm.Dup() for _ in range(ALIVE)]
    begin_s = time.monotonic()
    for each in comms:
        each.Allgather(np.zeros(1), np.zeros(comm.size))
    took_s = time.monotonic() - begin_s
    gatherings = [Gathering(comm, salt) for salt in range(ALIVE)]
    # Each rank starts its operations in an order of its own.
    order = np.random.default_rng(comm.rank).permutation(ALIVE)
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
    opening = sum(each.stats()["open_ns"] for each in comms)
    assert 0 < opening < took_s * 1e9
    for each in comms:
        each.Free()
    assert taken() == before, (taken(), before)
    return f"{ALIVE} communicators, {took_s / ALIVE * 1e3:.1f} ms to open one"


def come_and_go(make: Callable[[], MPI.Intracomm], times: int, lingering: int) -> str:
    """Open, use and free communicators; at most `lingering` descriptors may remain."""
    before, before_kib = taken(), 0
    begin_s = time.monotonic()
    for turn in range(times):
        if turn == times // 2:
            before_kib = resident_kib()
        derived = make()
        gather(derived, turn)
        derived.Free()
    took_s = time.monotonic() - begin_s
    more_kib = resident_kib() - before_kib
    assert more_kib <= SLACK_KIB, more_kib
    descriptors, threads, _ = taken()
    assert descriptors - before[0] <= lingering, (taken(), before)
    assert threads == before[1], (taken(), before)
    if not lingering:
        assert taken() == before, (taken(), before)
    return (
        f"{times} times {took_s / times * 1e3:.1f} ms, {more_kib} KiB more memory "
        f"in the second half"
    )


def main(times: int) -> None:
    """Run one rank."""
    world = MPI.Intracomm(MPI.COMM_WORLD)
    _, threads, _ = taken()
    comm = mpimcast.Intracomm(world.Dup(), transport="udp", min_bytes=0)
    gather(comm, 0)
    world.Barrier()
    said = [
        live(comm),
        f"the same processes: {come_and_go(comm.Dup, times, 0)}",
        # Ranks in another order need sockets and groups of their own.
        "others: "
        + come_and_go(lambda: comm.Split(0, -comm.rank), times // 5, LINGERING_MAX),
    ]
    world.Barrier()
    if world.rank == 0:
        print(*said, sep="\n")
    comm.Free()
    assert taken()[1] == threads


if __name__ == "__main__":
    main(int(sys.argv[1]))
