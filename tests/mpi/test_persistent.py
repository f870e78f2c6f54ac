# SPDX-License-Identifier: BSD-3-Clause
"""Persistent requests: started again and again, on streams that are reused."""

# ruff: noqa: SLF001 -- looks at a communicator's opened streams

from __future__ import annotations

import numpy as np
import pytest
from gathering import LOSSY, Gathering, Make, require_two_ranks, started
from mpi4py import MPI

import mpimcast


@pytest.mark.parametrize("fault", ["", LOSSY])
def test_persistent(make_opened: Make, fault: str, seed: int) -> None:
    """Odd and even ranks may start and complete their requests in opposite orders."""
    comm = make_opened(**({"fault": f"{fault},seed={seed}"} if fault else {}))
    gatherings = [Gathering(comm, count) for count in (1, 700, 5000)]
    requests = [comm.Allgather_init(each.block, each.place) for each in gatherings]
    order = [0, 1, 2] if comm.rank % 2 else [2, 1, 0]
    for turn in range(6):
        for which, each in enumerate(gatherings):
            each.fill(10 * turn + which)
        for which in order:
            requests[which].Start()
            assert requests[which] != MPI.REQUEST_NULL
        if turn % 3 == 0:
            MPI.Request.Waitall(requests)
        else:
            for which in order if turn % 3 == 1 else order[::-1]:
                requests[which].Wait()
                gatherings[which].check()
        for each in gatherings:
            each.check()
    for which in order:
        requests[which].Wait()
        requests[which].Free()
        with pytest.raises(MPI.Exception):
            requests[which].Start()


def test_startall(make_opened: Make) -> None:
    """mpimcast.Startall starts the MPI library's persistent requests, too."""
    comm = make_opened()
    rank, size = comm.rank, comm.size
    each = Gathering(comm, 2000)
    sent, got = np.zeros(10), np.zeros(10)
    requests = [
        comm.Recv_init(got, (rank - 1) % size),
        comm.Allgather_init(each.block, each.place),
        comm.Send_init(sent, (rank + 1) % size),
    ]
    for turn in range(4):
        each.fill(turn)
        sent.fill(turn)
        mpimcast.Startall(requests)
        MPI.Request.Waitall(requests)
        each.check()
        assert (got == turn).all()
    for request in requests:
        request.Free()


def test_mpi4pys_startall_refuses(make_opened: Make) -> None:
    """mpi4py's Startall refuses mpimcast's requests, and names mpimcast.Startall."""
    comm = make_opened()
    each = Gathering(comm, 2000)
    request = comm.Allgather_init(each.block, each.place)
    if comm.size > 1:
        with pytest.raises(MPI.Exception, match=r"mpimcast\.Startall"):
            MPI.Prequest.Startall([request])
    mpimcast.Startall([request])
    request.Wait()
    each.check()
    request.Free()


def test_streams_are_reused(make_opened: Make) -> None:
    """A new request takes over the stream of one that all ranks have freed.

    Otherwise it gets a new stream: no two requests share one.
    """
    comm = make_opened()
    require_two_ranks(comm)
    state = comm._comm_state
    assert state is not None
    streams = state._streams
    assert streams is not None
    each = Gathering(comm, 500)
    kept = comm.Allgather_init(each.block, each.place)
    for turn in range(20):
        request = comm.Allgather_init(each.block, each.place)
        each.fill(turn)
        request.Start()
        request.Wait()
        each.check()
        if turn % 2 or comm.rank:
            request.Free()
        else:
            del request
    # One for blocking calls, one for `kept`, one for the 20 others in turn.
    assert len(streams._opened) == 3
    kept.Free()
    # Only rank 0 has freed `other` when `third` is made, so no rank may take over the
    # stream of `other`.
    other = comm.Allgather_init(each.block, each.place)
    if comm.rank == 0:
        other.Free()
    third = comm.Allgather_init(each.block, each.place)
    each.fill(7)
    third.Start()
    third.Wait()
    each.check()
    third.Free()
    if comm.rank:
        other.Free()


def test_nothing_allocated_twice(make_opened: Make) -> None:
    """Once blocks of a size were gathered, further starts allocate and open nothing."""
    comm = make_opened()
    require_two_ranks(comm)
    each = Gathering(comm, 5000)
    persistent = comm.Allgather_init(each.block, each.place)
    for start in (each.start, lambda: persistent.Start() or persistent):
        start().Wait()
        before, nbefore = comm.stats(), started(comm)
        for salt in range(5):
            each.fill(salt)
            start().Wait()
            each.check()
        after = comm.stats()
        assert started(comm) == nbefore + 5
        assert after["allocations"] == before["allocations"]
        assert after["open_ns"] == before["open_ns"]
    persistent.Free()
