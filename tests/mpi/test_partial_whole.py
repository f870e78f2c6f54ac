# SPDX-License-Identifier: BSD-3-Clause
"""Partial completion where all blocks land together, at the end of the operation."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest
from gathering import Gathering, Make
from mpi4py import MPI
from parts import (
    NAMES,
    Mishap,
    Result,
    bits_of,
    take,
    take_async,
    take_by_callback,
)


def test_data_with_gaps(make_opened: Make) -> None:
    """Data that has to be unpacked lands at the end, and is in its place then."""
    comm = make_opened()
    count, stride = 700, 3
    datatype = MPI.INT32_T.Create_vector(count, 1, stride).Commit()
    rows = datatype.Create_resized(0, 4 * stride * count).Commit()
    own = np.arange(count, dtype=np.int32) + 1000 * comm.rank
    for way in ("for", "wait_block", "wait_range"):
        place = np.full((comm.size, count, stride), -1, np.int32)
        request = comm.Iallgather(own, [place, 1, rows])
        if way == "wait_block":
            request.wait_block(comm.size - 1)
        elif way == "wait_range":
            request.wait_range(0, 1)
        for rank in request.blocks():
            assert np.array_equal(place[rank, :, 0], np.arange(count) + 1000 * rank)
        assert (place[:, :, 1:] == -1).all()
        assert request.test_range(0, comm.size)
        request.Wait()
    rows.Free()
    datatype.Free()


def test_what_the_library_carries(make_opened: Make) -> None:
    """All of it lands at its end, this rank's block first, in every way of asking."""
    comm = make_opened(min_bytes=1 << 30)
    order = sorted(range(comm.size), key=lambda rank: (rank != comm.rank, rank))
    for name in NAMES:
        result = Result(comm, name, 300, 2)
        request = result.start(comm)
        taken = take(request, result)
        assert taken == [rank for rank in order if rank in result.ranks]
        for rank in result.ranks:
            request.wait_block(rank)
        assert request.test_range(0, len(result.blocks[result.root]))
        assert bits_of(request).all()
        request.Wait()
        assert asyncio.run(take_async(request, result)) == taken
        again = result.start(comm)
        assert take_by_callback(again, result) == taken
        with pytest.raises(Mishap):
            result.start(comm).on_block(_raise_mishap).Wait()


def _raise_mishap(_rank: int) -> None:
    raise Mishap


def test_persistent_requests_of_the_library(make_opened: Make) -> None:
    """Those of the MPI library's can be asked, too."""
    comm = make_opened(min_bytes=1 << 30)
    each = Gathering(comm, 30)
    request = comm.Allgather_init(each.block, each.place)
    for salt in range(3):
        each.fill(salt)
        request.Start()
        assert len(list(request.blocks())) == comm.size
        each.check()
        request.Wait()
    request.Free()
