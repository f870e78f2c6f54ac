# SPDX-License-Identifier: BSD-3-Clause
"""Ranks measure how far their clocks are apart."""

from __future__ import annotations

import time

import pytest
from mpi4py import MPI

from mpimcast import TimedOut
from mpimcast._mpi import clock


def test_skewed_clocks(mpi_comm: MPI.Intracomm) -> None:
    """What is measured is right within the error that is said.

    All ranks are on one host, and so have one clock; each adds a skew to it.
    """
    skews_ns = [(rank * 7919 - 5) * 10**6 for rank in range(mpi_comm.size)]
    mine_ns = skews_ns[mpi_comm.rank]
    comm = mpi_comm.Dup()
    offset_ns, error_ns = clock.measure(
        comm, 30, now_ns=lambda: time.monotonic_ns() + mine_ns
    )
    assert abs(offset_ns - (skews_ns[0] - mine_ns)) <= error_ns
    assert (error_ns == 0) == (mpi_comm.rank == 0)
    comm.Barrier()
    comm.Free()


def test_ranks_that_do_not_come(mpi_comm: MPI.Intracomm) -> None:
    """Rank 0 gives up the first that does not ask it for the time, and names it."""
    if mpi_comm.size == 1:
        pytest.skip("needs a second rank")
    comm = mpi_comm.Dup()
    if comm.rank == 0:
        first = 1 << (comm.size - 1).bit_length() - 1
        with pytest.raises(TimedOut, match="did not take part within 0") as caught:
            clock.measure(comm, 0.3)
        assert caught.value.ranks == (first,)
    # The communicator has a message under way, and so is not freed.
    mpi_comm.Barrier()
