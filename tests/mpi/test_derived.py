# SPDX-License-Identifier: BSD-3-Clause
"""Communicators derived from an mpimcast.Intracomm by Dup, Split and the like."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from gathering import MULTICAST_COUNT, gather_and_check, started
from mpi4py import MPI

from mpimcast import Intracomm


def is_ours(comm: Intracomm) -> bool:
    """Return whether mpimcast carries large blocks, unless there is only one rank."""
    return (comm.explain(10**6).path == "mpi") == (comm.Get_size() == 1)


DERIVATIONS: dict[str, Callable[[Intracomm], MPI.Intracomm]] = {
    "Dup": lambda comm: comm.Dup(),
    "Dup(info)": lambda comm: comm.Dup(MPI.INFO_NULL),
    "Clone": lambda comm: comm.Clone(),
    "Split": lambda comm: comm.Split(comm.rank % 2, -comm.rank),
    "Split all": lambda comm: comm.Split(),
    "Split_type": lambda comm: comm.Split_type(MPI.COMM_TYPE_SHARED),
    "Create": lambda comm: comm.Create(comm.Get_group()),
    "Create_group": lambda comm: comm.Create_group(comm.Get_group()),
}


@pytest.mark.parametrize("name", DERIVATIONS)
@pytest.mark.parametrize("parent_used", [False, True])
def test_derived(comm: Intracomm, name: str, parent_used: bool) -> None:
    """A derived communicator has its parent's class and settings."""
    if parent_used:
        gather_and_check(comm)
    derived = DERIVATIONS[name](comm)
    assert type(derived) is Intracomm
    gather_and_check(derived)
    gather_and_check(comm)
    assert is_ours(derived)
    if derived.size > 1:
        assert started(derived) == 1
        if derived.stats()["epochs"]:
            nchunks = -(-8 * MULTICAST_COUNT // 512)
            assert derived.stats()["tx_multicast_datagrams"] == nchunks
    derived.Free()
    gather_and_check(comm)


def test_idup(comm: Intracomm) -> None:
    """A duplicate that Idup makes has its parent's class and settings."""
    gather_and_check(comm)
    derived, request = comm.Idup()
    gather_and_check(comm)
    request.Wait()
    assert type(derived) is Intracomm
    gather_and_check(derived)
    assert is_ours(derived)
    derived.Free()


def test_create_from_group(mpi_comm: MPI.Intracomm) -> None:
    """Intracomm.Create_from_group makes an mpimcast.Intracomm."""
    group = mpi_comm.Get_group()
    try:
        comm = Intracomm.Create_from_group(group, "mpimcast.test")
    except (NotImplementedError, MPI.Exception):
        pytest.skip("this MPI library has no Create_from_group")
    finally:
        group.Free()
    assert type(comm) is Intracomm
    gather_and_check(comm)
    comm.Free()


@pytest.mark.network
def test_merge(comm: Intracomm, monkeypatch: pytest.MonkeyPatch) -> None:
    """Merging two halves makes an mpimcast.Intracomm.

    It inherits no settings, but reads those of the environment.
    """
    if comm.size == 1:
        return
    monkeypatch.setenv("MPIMCAST_TRANSPORT", "udp")
    half = comm.Split(comm.rank % 2)
    between = half.Create_intercomm(0, comm, 1 - comm.rank % 2)
    whole = between.Merge(comm.rank % 2 == 1)
    assert type(whole) is Intracomm
    assert whole.size == comm.size
    gather_and_check(whole)
    gather_and_check(whole, 20_000)
    assert is_ours(whole)
    for each in (whole, between, half):
        each.Free()


def test_not_in_the_group(comm: Intracomm) -> None:
    """A rank that is left out gets the null communicator, as in MPI."""
    color = MPI.UNDEFINED if comm.rank == 0 else 1
    part = comm.Split(color)
    assert (part == MPI.COMM_NULL) == (comm.rank == 0)
    if part != MPI.COMM_NULL:
        gather_and_check(part)
        part.Free()
    with pytest.raises(MPI.Exception):
        Intracomm(MPI.COMM_NULL).Allgather(np.zeros(1), np.zeros(1))


def test_topologies_are_mpi4pys(comm: Intracomm) -> None:
    """A Cartesian communicator has mpi4py's own class, and its collectives work."""
    cart = comm.Create_cart([comm.size])
    assert type(cart) is MPI.Cartcomm
    gather_and_check(cart)
    cart.Free()
