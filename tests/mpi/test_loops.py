# SPDX-License-Identifier: BSD-3-Clause
"""Collectives in loops: messages an operation, and memory of a root that is ahead."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from gathering import Gathering, require_two_ranks
from mpi4py import MPI

from mpimcast import Intracomm

Make = Callable[..., Intracomm]


@pytest.mark.network
@pytest.mark.parametrize(
    ("form", "count"),
    [("blocking", 100), ("blocking", 5000), ("request", 100), ("persistent", 5000)],
)
def test_control_messages_of_an_operation(
    make_opened: Make, form: str, count: int
) -> None:
    """Each rank sends ceil(log2 P) control messages in an operation.

    A rank that gets no processor for long is asked again, which takes more messages. So
    the test looks for 4 operations in a row that need no more, in up to 100 attempts. A
    second barrier in each operation would double the messages of all of them.
    """
    comm = make_opened(chunk_bytes=0)
    require_two_ranks(comm)
    each = Gathering(comm, count)
    request = comm.Allgather_init(each.block, each.place)
    nops, attempts = 4, 100
    needed = nops * math.ceil(math.log2(comm.size))
    fewest = math.inf
    while fewest >= 1.5 * needed and (attempts := attempts - 1):
        before = comm.stats()
        for _ in range(nops):
            if form == "blocking":
                comm.Allgather(each.block, each.place)
            elif form == "request":
                each.start().Wait()
            else:
                request.Start()
                request.Wait()
        after = comm.stats()
        assert after["epochs"] == before["epochs"] + nops
        sent = after["tx_control_datagrams"] - before["tx_control_datagrams"]
        fewest = min(fewest, comm.allreduce(sent, MPI.MIN))
    each.check()
    request.Free()
    assert needed <= fewest < 1.5 * needed


# ---- a root that is ahead ------------------------------------------------------

# A root broadcasts NBYTES, NOPS times. The last rank is late NLATE times.
NBYTES = 200_000
NOPS = 300
NLATE = 3


def resident_bytes() -> int:
    """Return how many bytes of this process are in memory."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.parametrize("form", ["blocking", "request"])
def test_memory_of_a_fast_root(
    make_opened: Make, mpi_comm: MPI.Intracomm, form: str
) -> None:
    """A root that never waits keeps little data for a receiver that is late for 1 s."""
    if mpi_comm.size != 3:
        pytest.skip("takes seconds, and one number of ranks is enough: 3")
    comm = make_opened()
    data = np.zeros(NBYTES, np.uint8)
    requests = []

    def bcast(op: int) -> None:
        if comm.rank == comm.size - 1 and op % (NOPS // NLATE) == 0:
            time.sleep(1)
        if form == "blocking":
            data.fill(op % 251 if comm.rank == 0 else 255)
            comm.Bcast(data)
            assert (data == op % 251).all()
        elif comm.rank == 0:
            requests.append(comm.Ibcast(data))
        else:
            data.fill(255)
            comm.Ibcast(data).Wait()
            assert not data.any()

    for op in range(1, 20):
        bcast(op)
    MPI.Request.Waitall(requests)
    requests.clear()
    mpi_comm.Barrier()
    before, resident = comm.stats(), resident_bytes()
    for op in range(NOPS):
        bcast(op)
    ahead, held_bytes = comm.stats(), resident_bytes()
    MPI.Request.Waitall(requests)
    after = comm.stats()
    held_bytes = max(held_bytes, resident_bytes()) - resident
    # A rank whose assertion fails must not keep others waiting in an operation.
    mpi_comm.Barrier()
    # A tenth of all data that was sent.
    assert held_bytes < NOPS * NBYTES // 10
    if form == "blocking":
        assert after["allocations"] == before["allocations"]
    elif comm.rank == 0:
        # The root was ahead: when it had started all operations, few were complete.
        assert ahead["epochs"] - before["epochs"] < NOPS // NLATE
