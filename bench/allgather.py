# SPDX-License-Identifier: BSD-3-Clause
"""Ranks that repeat an Allgather; rank 0 prints a line of JSON about it.

Every operation begins with a barrier and an equal idle gap, after which links have
again what they carry in a burst. Its time is from the last rank's begin to the last
rank's end, by the clock that they share on one machine: how long ranks take to leave
the barrier is not the operation's. The time of processors is that of all ranks.
"""

from __future__ import annotations

import argparse
import json
import resource
import time

import numpy as np
from mpi4py import MPI

import mpimcast

GAP_S = 0.005


def used_s() -> float:
    """Return this process's time of processors."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def main() -> None:
    """Run one rank."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("way", choices=["verbs", "udp", "mpi"])
    parser.add_argument("nbytes", type=int)
    parser.add_argument("iterations", type=int)
    options = parser.parse_args()
    world = MPI.Intracomm(MPI.COMM_WORLD)
    comm = mpimcast.Intracomm(world.Dup(), transport=options.way, min_bytes=0)
    mine = np.full(options.nbytes, world.rank, np.uint8)
    place = np.zeros((world.size, options.nbytes), np.uint8)
    seconds, processors = [], []
    for _ in range(options.iterations):
        place.fill(255)
        world.Barrier()
        time.sleep(GAP_S)
        used_before_s, begin_s = used_s(), time.monotonic()
        comm.Allgather(mine, place)
        end_s, used_for_s = time.monotonic(), used_s() - used_before_s
        last_begin_s = world.allreduce(begin_s, MPI.MAX)
        seconds.append(world.allreduce(end_s, MPI.MAX) - last_begin_s)
        processors.append(world.allreduce(used_for_s))
        if not (place == np.arange(world.size)[:, None]).all():
            raise RuntimeError("wrong bytes")
    stats = world.allgather(comm.stats())
    if world.rank == 0:
        totals = {name: sum(each[name] for each in stats) for name in stats[0]}
        said = {"seconds": seconds, "processor_seconds": processors, "stats": totals}
        print(json.dumps(said), flush=True)


if __name__ == "__main__":
    main()
