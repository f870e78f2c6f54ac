# SPDX-License-Identifier: BSD-3-Clause
"""A program with all public names of mpimcast; a test type-checks it and runs it."""

from __future__ import annotations

from typing import Any

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray
from typing_extensions import assert_type

import mpimcast


class UserComm(mpimcast.Intracomm):
    """A user's subclass. The communicators that it derives have this class, too."""

    def total(self) -> int:
        """Return the number of ranks."""
        return self.size


def blocking(comm: mpimcast.Intracomm) -> None:
    """Use the blocking collectives."""
    block = np.full(4, comm.rank)
    blocks = mpimcast.empty((comm.size, 4), block.dtype)
    assert_type(blocks, NDArray[Any])
    assert_type(comm.Allgather(block, blocks), None)
    comm.Allgather([block, 4, MPI.INT64_T], [blocks, 4, MPI.INT64_T])
    comm.Allgather(MPI.IN_PLACE, blocks)
    counts = [4] * comm.size
    assert_type(comm.Allgatherv(block, (blocks, counts)), None)
    comm.Allgatherv(block, [blocks, (counts, None), MPI.INT64_T])
    assert_type(comm.Bcast(blocks), None)
    comm.Bcast((block, MPI.INT64_T), root=comm.size - 1)
    comm.bcast({"step": 7}, root=0)["step"] += 1
    shared = mpimcast.empty(blocks.shape, "i8", comm=comm)
    assert_type(shared, NDArray[Any])
    assert_type(mpimcast.is_shared(shared), bool)
    assert_type(comm.node_barrier(), None)
    assert_type(comm.allgather(comm.rank), list[Any])


def requests(comm: mpimcast.Intracomm) -> None:
    """Use the non-blocking and the persistent collectives."""
    block, counts = np.full(4, comm.rank), [4] * comm.size
    places = np.zeros((4, comm.size, 4), int)
    started = [
        comm.Ibcast(places[0], root=0),
        comm.Iallgather(block, places[1]),
        comm.Iallgatherv(block, [places[2], counts]),
    ]
    assert_type(started, list[mpimcast.Request | mpimcast.HostedRequest])
    assert_type(started[0].Test(), bool)
    # If the MPI library carries a collective, the request is a HostedRequest.
    for each in started:
        partial(each)
        if isinstance(each, mpimcast.Request):
            assert_type(each.test(), tuple[bool, None])
    MPI.Request.Waitall(started)
    persistent = [
        comm.Bcast_init(places[0], 0),
        comm.Allgather_init(block, places[1], info=MPI.INFO_NULL),
        comm.Allgatherv_init(block, [places[2], counts]),
    ]
    assert_type(persistent, list[mpimcast.Prequest | mpimcast.HostedPrequest])
    assert_type(mpimcast.Startall(persistent), None)
    MPI.Request.Waitall(persistent)
    for request in persistent:
        # An inactive persistent request of mpimcast equals MPI.REQUEST_NULL.
        if isinstance(request, mpimcast.Prequest):
            assert request == MPI.REQUEST_NULL
        request.Start()
        request.Wait()
        request.Free()


def partial(request: mpimcast.Request | mpimcast.HostedRequest) -> None:
    """Use parts of a result."""
    assert_type(request.blocks(), mpimcast.Blocks)
    for rank in request.blocks():
        assert_type(rank, int)
        request.wait_block(rank)
    assert_type(request.test_range(0, 1), bool)
    assert_type(request.wait_range(0, 1), None)
    assert_type(request.chunks, int)
    assert request.present.dtype == np.uint64
    request.on_block(print).Wait()


def derived(comm: UserComm) -> None:
    """Derive communicators that have the class of `comm`, and an Intercomm."""
    group = comm.Get_group()
    one, request = comm.Idup()
    another, another_request = comm.Idup_with_info(MPI.INFO_NULL)
    MPI.Request.Waitall([request, another_request])
    comms = [
        comm.Dup(),
        comm.Dup_with_info(MPI.INFO_NULL),
        comm.Clone(),
        one,
        another,
        comm.Split(0, comm.rank),
        comm.Split_type(MPI.COMM_TYPE_SHARED),
        comm.Create(group),
        comm.Create_group(group, tag=1),
    ]
    assert_type(comms, list[UserComm])
    for each in comms:
        assert each.total() == comm.size
        each.Free()
    if comm.size > 1:
        half = comm.Split(comm.rank % 2)
        between = half.Create_intercomm(0, comm, 1 - comm.rank % 2)
        assert_type(between, mpimcast.Intercomm)
        assert_type(between.Merge(), mpimcast.Intracomm).Free()
        between.Free()
        half.Free()


def errors(comm: mpimcast.Intracomm) -> None:
    """Assert the types of errors, counters and explanations."""
    try:
        comm.Bcast(np.zeros(4))
    # The Bcast succeeds. Only the type checker needs this handler.
    except (
        mpimcast.ConfigError,
        mpimcast.RankLeft,
        mpimcast.TimedOut,
        mpimcast.TransportError,
    ) as error:
        assert_type(error.epoch, int | None)
        assert_type(error.ranks, tuple[int, ...])
        assert_type(error.missing_chunks, int)
        if not isinstance(error, mpimcast.Error):
            raise
    assert_type(comm.stats(), dict[str, int])
    assert_type(comm.explain(8), mpimcast.Explanation)
    assert_type(comm.explain(8).path, str)
    assert_type(mpimcast.__version__, str)


def public() -> None:
    """Assert that mpimcast exports the classes of the objects that users receive."""
    classes: tuple[type, ...] = (
        mpimcast.Blocks,
        mpimcast.Explanation,
        mpimcast.HostedPrequest,
        mpimcast.HostedRequest,
        mpimcast.Intercomm,
        mpimcast.Prequest,
        mpimcast.Request,
    )
    for each in classes:
        assert each.__name__ in mpimcast.__all__


def main() -> None:
    """Use all public names of mpimcast."""
    public()
    comm = UserComm(MPI.COMM_WORLD, transport="auto", min_bytes=0, timeout=20.0)
    blocking(comm)
    requests(comm)
    derived(comm)
    errors(comm)
    print("used")


if __name__ == "__main__":
    main()
