# SPDX-License-Identifier: BSD-3-Clause
"""Collectives in loops: the cost of one, and the memory of ranks that never wait."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from gathering import Gathering, alone
from mpi4py import MPI

from mpimcast import Intracomm

Make = Callable[..., Intracomm]


@pytest.mark.parametrize(
    ("form", "count"),
    [("blocking", 100), ("blocking", 5000), ("request", 100), ("persistent", 5000)],
)
def test_one_dissemination(opened: Make, form: str, count: int) -> None:
    """An operation costs ceil(log2 P) control messages.

    A rank that gets no processor for long is asked again, so the test looks for a few
    operations in a row that cost no more. A second dissemination would leave none.
    """
    comm = opened(chunk_bytes=0)
    alone(comm)
    each = Gathering(comm, count)
    request = comm.Allgather_init(each.block, each.place)
    in_a_row, batches = 4, 100
    once = in_a_row * math.ceil(math.log2(comm.size))
    fewest = math.inf
    while fewest >= 1.5 * once and (batches := batches - 1):
        before = comm.stats()
        for _ in range(in_a_row):
            if form == "blocking":
                comm.Allgather(each.block, each.place)
            elif form == "request":
                each.start().Wait()
            else:
                request.Start()
                request.Wait()
        after = comm.stats()
        assert after["epochs"] == before["epochs"] + in_a_row
        sent = after["tx_control_datagrams"] - before["tx_control_datagrams"]
        fewest = min(fewest, comm.allreduce(sent, MPI.MIN))
    each.check()
    request.Free()
    assert once <= fewest < 1.5 * once


# ---- a root that is ahead ------------------------------------------------------

BYTES = 200_000
NOPS = 300
NLATE = 3


def resident_bytes() -> int:
    """Return the resident memory of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.parametrize("form", ["blocking", "request"])
def test_fast_root(opened: Make, library: MPI.Intracomm, form: str) -> None:
    """A root that never waits holds little for a receiver that is late repeatedly."""
    if library.size != 3:
        pytest.skip("once is enough")
    comm = opened()
    data = np.zeros(BYTES, np.uint8)
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
    library.Barrier()
    before, resident = comm.stats(), resident_bytes()
    for op in range(NOPS):
        bcast(op)
    ahead, held_bytes = comm.stats(), resident_bytes()
    MPI.Request.Waitall(requests)
    after = comm.stats()
    held_bytes = max(held_bytes, resident_bytes()) - resident
    # Let no rank wait for one that has failed.
    library.Barrier()
    # All data that was sent would be ten times as much.
    assert held_bytes < NOPS * BYTES // 10
    if form == "blocking":
        assert after["allocations"] == before["allocations"]
    elif comm.rank == 0:
        # Most operations had not completed yet.
        assert ahead["epochs"] - before["epochs"] < NOPS // NLATE
