# SPDX-License-Identifier: BSD-3-Clause
"""The program of each rank of a job: repeats collectives; rank 0 reports to job.py.

A barrier and then a gap without traffic precede every operation, so that links can
carry a full burst again. A gap of the same length follows it, in which ranks that are
done leave the processors to the others. An operation's time runs from the last rank's
start to the last rank's end, by the clock that all ranks share on one machine. So it
does not include the time that ranks take to leave the barrier. Processor time is that
of all ranks together.
"""

from __future__ import annotations

import argparse
import json
import platform
import socket
import time
from typing import Any

import mpi4py
import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

import mpimcast
from bench.jobs.gloo import Gloo
from bench.jobs.meeting import Meeting
from mpimcast.cli.bench.measure import processor_s
from mpimcast.cli.bench.workload import Workload, workload

GAP_S = 0.005

# This many operations precede those that are measured, but only one if at most FEW are
# measured, since then each takes long.
WARMUP = 2
FEW = 3

# If the ranks together receive more than this, only the last operation is checked. To
# check every one would take longer than the operations.
CHECKED_BYTES_MAX = 128 << 20


class Pair:
    """An Allgather and a Reduce_scatter at once, as in the backward pass of FSDP.

    It has the methods of a Workload. The results of both collectives are checked.

    Parameters
    ----------
    world
        A communicator of the ranks.
    library
        The communicator that runs the Reduce_scatter: the MPI library's, or gloo's.
    nbytes
        Bytes of each rank's block.
    """

    def __init__(
        self, world: MPI.Intracomm, library: MPI.Intracomm | Gloo, nbytes: int
    ) -> None:
        self._gather = workload("Allgather", world, nbytes)
        self._world, self._library = world, library
        self._count = nbytes // 4
        self._send = np.empty((world.size, self._count), np.float32)
        self._recv = np.zeros(self._count, np.float32)
        self.total_bytes = 2 * world.size * nbytes

    def turn_to(self, number: int, turn: int) -> None:
        """Choose the data of operation `number`, with `turn` as in a Workload."""
        self._gather.turn_to(number, turn)
        self._number = number

    def fill(self) -> None:
        """Write this rank's contributions."""
        self._gather.fill()
        # Sums of small whole numbers are exact in floating point.
        own = np.arange(self._count) + self._number + self._world.rank
        self._send[:] = own % 1000

    def run(self, comm: MPI.Intracomm | Gloo) -> None:
        """Start both operations, and wait for both."""
        gather = self._gather.start(comm)
        reduce = self._library.Ireduce_scatter_block(self._send, self._recv)
        reduce.Wait()
        gather.Wait()

    def wrong_bytes(self) -> int:
        """Return how many bytes of the results are wrong."""
        first = np.arange(self._count) + self._number
        sums = sum((first + rank) % 1000 for rank in range(self._world.size))
        return self._gather.wrong_bytes() + 4 * int(
            np.count_nonzero(self._recv != sums)
        )


class Reporter:
    """Sends the messages of rank 0 to job.py, and does nothing on other ranks.

    Parameters
    ----------
    path
        The socket on which job.py listens, or ``-`` to print messages instead.
    rank
        This rank.
    """

    def __init__(self, path: str, rank: int) -> None:
        self._rank = rank
        self._line: Any = None
        if rank == 0 and path != "-":
            connection = socket.socket(socket.AF_UNIX)
            connection.connect(path)
            self._line = connection.makefile("rw")

    def send(self, **message: Any) -> None:
        """Send a message and wait until job.py has dealt with it, or print it."""
        if self._line is not None:
            self._line.write(json.dumps(message) + "\n")
            self._line.flush()
            self._line.readline()
        elif self._rank == 0:
            print(json.dumps(message), flush=True)


def measure(
    world: MPI.Intracomm,
    comm: Any,
    work: Any,
    iterations: int,
    reporter: Reporter,
    *,
    whole: bool = False,
) -> dict[str, Any]:
    """Measure `iterations` operations of one collective; return what rank 0 reports.

    `comm` carries the operations of `work`, which is like a Workload; if its run()
    returns a time, this rank's part of the operation counts as ended then. `world` is a
    communicator of the MPI library, for barriers and results. If `whole`, no warm-up
    precedes them. The values returned are fields of a Measurement.
    """
    times = np.zeros((2, iterations))
    used_s = np.zeros(iterations)
    wrong_bytes = 0
    warmup = 0 if whole else 1 if iterations <= FEW else WARMUP
    checks_all = work.total_bytes * world.size <= CHECKED_BYTES_MAX
    before: dict[str, int] = {}
    for number in range(-warmup, iterations):
        if number == 0:
            before = counters(comm)
            reporter.send(state="begin")
        work.turn_to(number + warmup, 0)
        work.fill()
        world.Barrier()
        time.sleep(GAP_S)
        used_before_s, begin_s = processor_s(), time.monotonic()
        ended_s = work.run(comm)
        end_s = time.monotonic() if ended_s is None else ended_s
        used_after_s = processor_s()
        time.sleep(GAP_S)
        if number >= 0:
            times[:, number] = begin_s, end_s
            used_s[number] = used_after_s - used_before_s
        if checks_all or number == iterations - 1:
            wrong_bytes += work.wrong_bytes()
    world.Barrier()
    reporter.send(state="end")
    after = counters(comm)
    spent = {name: after[name] - before[name] for name in after}
    return _together(world, times, used_s, spent) | {
        "wrong_bytes": world.allreduce(wrong_bytes)
    }


def _together(
    world: MPI.Intracomm,
    times: NDArray[np.float64],
    used_s: NDArray[np.float64],
    spent: dict[str, int],
) -> dict[str, Any]:
    """Return the times of operations, processor time and counters of all ranks."""
    world.Allreduce(MPI.IN_PLACE, times, MPI.MAX)
    world.Allreduce(MPI.IN_PLACE, used_s, MPI.SUM)
    counted = world.allgather(spent)
    return {
        "seconds": (times[1] - times[0]).tolist(),
        "processor_seconds": used_s.tolist(),
        "counters": {name: sum(each[name] for each in counted) for name in spent},
    }


def counters(comm: Any) -> dict[str, int]:
    """Return mpimcast's counters, or none if it carries nothing out."""
    counted: dict[str, int] = getattr(comm, "stats", dict)()
    return counted


def versions(comm: MPI.Intracomm | Gloo) -> dict[str, str]:
    """Return the versions of the software that was measured."""
    torch = {"torch": comm.version()} if isinstance(comm, Gloo) else {}
    return torch | {
        "mpimcast": mpimcast.__version__,
        "mpi": _library(),
        "mpi4py": mpi4py.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
    }


def _library() -> str:
    """Return the MPI library's name and version number."""
    lines = MPI.Get_library_version().replace("\0", "").splitlines()
    if lines[0].startswith("MPICH"):
        return " ".join(lines[0].split()[::2][:1] + lines[0].split()[-1:])
    return lines[0].partition(",")[0].strip()


def _opened(
    world: MPI.Intracomm, transport: str, interface: str
) -> MPI.Intracomm | Gloo:
    """Return the communicator that carries the operations, with its transport open.

    `interface` is the network interface that gloo uses.
    """
    if transport == "library":
        return world
    if transport == "gloo":
        return Gloo(world, interface)
    if transport == "default":
        comm = mpimcast.Intracomm(world.Dup())
        # Opens the transport, but measures no way: a persistent request is no trial.
        sent = np.zeros(1 << 17, np.uint8)
        request = comm.Allgather_init(sent, np.zeros((world.size, sent.size), np.uint8))
        request.Start()
        request.Wait()
        request.Free()
        return comm
    comm = mpimcast.Intracomm(world.Dup(), transport=transport, min_bytes=0)
    # A nonblocking operation could not open the transport.
    workload("Allgather", world, 1).run(comm)
    return comm


def arguments() -> argparse.Namespace:
    """Return the arguments with which job.py has started this rank."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "socket", help="the socket on which job.py listens, or - to print the results"
    )
    parser.add_argument(
        "transport",
        help="mpimcast's transport; `default` to let mpimcast choose, `library` to use "
        "the MPI library alone, and `gloo` to use gloo",
    )
    parser.add_argument("--interface", default="lo", help="gloo's network interface")
    parser.add_argument("--shared", action="store_true", help="share the results")
    parser.add_argument(
        "--threads", action="store_true", help="gather in a thread in training steps"
    )
    parser.add_argument(
        "--meeting",
        action="store_true",
        help="begin operations together by a file, and not by a barrier of messages",
    )
    parser.add_argument("--whole", action="store_true", help="measure without warm-up")
    parser.add_argument("tasks", help="JSON: [[collective, bytes, iterations], ...]")
    return parser.parse_args()


def world_of(options: argparse.Namespace) -> MPI.Intracomm:
    """Return the communicator of all ranks, as the arguments want its barrier."""
    if options.meeting:
        world = Meeting(MPI.COMM_WORLD)
        world.meet_in(f"{options.socket}-meeting")
        return world
    return MPI.Intracomm(MPI.COMM_WORLD)


def main() -> None:
    """Run one rank."""
    options = arguments()
    world = world_of(options)
    reporter = Reporter(options.socket, world.rank)
    comm = _opened(world, options.transport, options.interface)
    sharing = None
    if options.shared and isinstance(comm, mpimcast.Intracomm):
        sharing = comm
    found = []
    for collective, nbytes, iterations in json.loads(options.tasks):
        work: Workload | Pair
        if "+" in collective:
            library = comm if isinstance(comm, Gloo) else MPI.Intracomm(world.Dup())
            work = Pair(world, library, nbytes)
        else:
            work = workload(
                collective, world, nbytes, in_place=options.shared, sharing=sharing
            )
        found.append(
            measure(world, comm, work, iterations, reporter, whole=options.whole)
        )
    reporter.send(state="result", found=found, versions=versions(comm))
    if isinstance(comm, Gloo):
        comm.close()


if __name__ == "__main__":
    main()
