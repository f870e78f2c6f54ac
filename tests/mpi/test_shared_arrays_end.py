# SPDX-License-Identifier: BSD-3-Clause
"""How long shared arrays live, and that nothing is left of them."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import mpimcast
from mpimcast import Intracomm
from mpimcast._session import passing

Make = Callable[..., Intracomm]


@pytest.fixture
def comm(make_comm: Make) -> Iterator[Intracomm]:
    """Yield a communicator whose ranks share memory; leave no array behind."""
    yield make_comm(transport="shm", chunk_bytes=0)
    gc.collect()


def shared_mappings() -> int:
    """Return how many mappings of shared memory this process has."""
    return Path("/proc/self/maps").read_text().count("/memfd:mpimcast")


def test_deleted_elsewhere(comm: Intracomm) -> None:
    """An array outlives the deletion of other ranks' arrays."""
    shared = mpimcast.empty((comm.size, 5000), comm=comm)
    comm.Allgather(np.full(5000, float(comm.rank)), shared)
    before = shared_mappings()
    view = shared[:, 1]
    del shared
    gc.collect()
    assert shared_mappings() == before
    comm.Barrier()
    if comm.rank != comm.size - 1:
        del view
        gc.collect()
        assert shared_mappings() == before - (comm.size > 1)
        comm.Barrier()
        return
    comm.Barrier()
    assert view.tolist() == list(range(comm.size))


def test_the_communicator_goes_first(make_comm: Make) -> None:
    """An array can be read, and used by others, after its communicator is freed."""
    comm = make_comm(transport="shm", chunk_bytes=0)
    duplicate = comm.Dup()
    shared = mpimcast.empty((comm.size, 5000), comm=comm)
    comm.Allgather(np.full(5000, float(comm.rank)), shared)
    comm.Free()
    assert shared[:, 7].tolist() == list(range(shared.shape[0]))
    duplicate.Barrier()
    duplicate.Allgather(np.full(5000, duplicate.rank + 1.0), shared)
    assert shared[:, 7].tolist() == list(range(1, shared.shape[0] + 1))
    duplicate.Free()


def test_many(comm: Intracomm) -> None:
    """A hundred arrays at once and one after the other leave nothing behind."""
    comm.node_barrier()
    comm.Bcast(mpimcast.empty(3, comm=comm))
    keeps_the_engine = mpimcast.empty(3)
    fds = len(list(Path("/proc/self/fd").iterdir()))
    before = shared_mappings()
    arrays = [mpimcast.empty((comm.size, 600), "i4", comm=comm) for _ in range(100)]
    assert len(list(Path("/proc/self/fd").iterdir())) == fds
    for number, each in enumerate(arrays):
        comm.Allgather(np.full(600, number + comm.rank, "i4"), each)
    for number, each in enumerate(arrays):
        assert each[:, 599].tolist() == [number + rank for rank in range(comm.size)]
    del arrays, each
    gc.collect()
    assert shared_mappings() == before
    for number in range(30):
        again = mpimcast.empty((comm.size, 600), "i4", comm=comm)
        comm.Allgather(np.full(600, number + comm.rank, "i4"), again)
        assert again[-1, 0] == number + comm.size - 1
    del again
    gc.collect()
    assert shared_mappings() == before
    assert keeps_the_engine.size == 3


def test_no_names(comm: Intracomm, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shared arrays have no name by which another process could find them."""
    opened = []

    class Watched(passing.Door):
        """A door that is remembered."""

        def __init__(self, secret: str, backlog: int) -> None:
            opened.append(passing.address(secret)[1:].decode())
            super().__init__(secret, backlog)

    comm.node_barrier()
    monkeypatch.setattr(passing, "Door", Watched)
    shared = mpimcast.empty((comm.size, 600), "i4", comm=comm)
    comm.Allgather(np.full(600, comm.rank, "i4"), shared)
    sockets = Path("/proc/net/unix").read_text()
    assert not any(name in sockets for name in opened)
    assert len(opened) == (comm.rank == 0 and comm.size > 1)
    maps = Path("/proc/self/maps").read_text().splitlines()
    files = {
        line.split(None, 5)[5] for line in maps if "mpimcast" in line and "rw-s" in line
    }
    assert files <= {"/memfd:mpimcast (deleted)"}
