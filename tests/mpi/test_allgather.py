# SPDX-License-Identifier: BSD-3-Clause
"""Every byte is as in the MPI library, whatever the size and whatever is lost."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from mpi4py import MPI

from mpimcast import Intracomm

CHUNK_BYTES = 512
GUARD_BYTES = 64
LOSSY = "loss=0.1,dup=0.02,reorder=0.05"

Make = Callable[..., Intracomm]


def block_of(rank: int, nbytes: int, salt: int = 0) -> np.ndarray:
    """Return a rank's block, random by rank, size and salt."""
    return np.random.default_rng((rank, nbytes, salt)).integers(
        0, 256, nbytes, np.uint8
    )


def check(comm: MPI.Intracomm, nbytes: int, salt: int = 0) -> np.ndarray:
    """Gather blocks of `nbytes`, check every byte, and return the memory.

    The guards before and behind the gathered blocks must stay as they are.
    """
    size = comm.Get_size()
    around = np.full(size * nbytes + 2 * GUARD_BYTES, 0xA5, np.uint8)
    place = around[GUARD_BYTES : GUARD_BYTES + size * nbytes]
    comm.Allgather(block_of(comm.Get_rank(), nbytes, salt), place)
    expected = np.concatenate([block_of(rank, nbytes, salt) for rank in range(size)])
    wrong = np.flatnonzero(place != expected)
    assert wrong.size == 0, f"{nbytes} bytes: {wrong.size} wrong from {wrong[0]} on"
    assert (around[:GUARD_BYTES] == 0xA5).all()
    assert (around[-GUARD_BYTES:] == 0xA5).all()
    return around


SIZES = (0, 1, 2, 7, 511, 512, 513, 1023, 1024, 1025, 4096, 7919, 65537)


@pytest.mark.parametrize("settings", [{}, {"eager_bytes": 0}, {"chunk_bytes": 0}])
def test_sizes(make: Make, settings: dict[str, object]) -> None:
    """Blocks of any size are gathered: empty, prime, around chunk boundaries."""
    comm = make(**settings)
    for nbytes in SIZES:
        check(comm, nbytes)
    if comm.Get_size() > 1:
        assert comm.stats()["epochs"] == len(SIZES)


def test_a_mebibyte(make: Make) -> None:
    """A block of a size that FSDP gathers is gathered, in chunks of the path's size."""
    comm = make(chunk_bytes=0)
    check(comm, 1 << 20)


@pytest.mark.parametrize(
    "settings",
    [
        {"chains": "all"},
        {"chains": 2},
        {"chains": 3, "subgroups": 3},
        {"window_bytes": "64K"},
        {"checksum": "off"},
        {"checksum": "full"},
        {"repair": "neighbour"},
    ],
    ids=str,
)
@pytest.mark.parametrize("fault", ["", LOSSY])
def test_settings(
    make: Make, settings: dict[str, object], fault: str, seed: int
) -> None:
    """The result is the same under all settings, with and without loss."""
    comm = make(**settings, fault=f"{fault},seed={seed}" if fault else "")
    for nbytes in (0, 1, 1300, 40_000):
        check(comm, nbytes)


@pytest.mark.parametrize("repair", ["nak", "neighbour"])
def test_loss(make: Make, repair: str, seed: int, long: bool) -> None:
    """Injected loss, duplication and reordering leave no trace but in stats()."""
    comm = make(repair=repair, fault=f"{LOSSY},seed={seed}")
    random = np.random.default_rng(seed)
    for salt in range(200 if long else 20):
        check(comm, int(random.integers(0, 30_000)), salt)
    stats = comm.stats()
    if comm.Get_size() > 1:
        assert stats["rx_lost_chunks"] > 0
        assert stats["rx_repaired_chunks"] > 0


@pytest.mark.parametrize("kind", ["multicast", "control", "repair", "all"])
def test_loss_of_a_kind(make: Make, kind: str, seed: int) -> None:
    """Datagrams of every kind may be lost without an effect on the result."""
    comm = make(fault=f"loss=0.3,kind={kind},seed={seed};loss=0.05,seed={seed + 1}")
    for salt, nbytes in enumerate((0, 10, 1300, 9000)):
        check(comm, nbytes, salt)


def test_corruption(make: Make, seed: int) -> None:
    """CHECKSUM=full finds every datagram that was changed in transit."""
    comm = make(checksum="full", fault=f"corrupt=0.1,seed={seed}")
    for salt in range(5):
        check(comm, 20_000, salt)
    if comm.Get_size() > 1:
        assert comm.stats()["rx_corrupt_datagrams"] > 0


def test_a_straggler_catches_up(make: Make, seed: int) -> None:
    """A rank that stalls now and then is waited for, and gets everything."""
    comm = make(fault=f"stall_ms=5,loss=0.02,rank=0,seed={seed}")
    for salt in range(3):
        check(comm, 20_000, salt)


def test_buffers_are_the_users_again(comm: Intracomm) -> None:
    """After the return the result stays, and the sent block may change."""
    rank, size = comm.Get_rank(), comm.Get_size()
    kept = []
    for salt in range(20):
        nbytes = 100 * salt
        sent = block_of(rank, nbytes, salt)
        place = np.zeros(size * nbytes, np.uint8)
        comm.Allgather(sent, place)
        sent.fill(0xEE)
        expected = [block_of(each, nbytes, salt) for each in range(size)]
        assert np.array_equal(place, np.concatenate(expected) if nbytes else place)
        place.fill(salt)
        kept.append(place)
    comm.Barrier()
    for salt, place in enumerate(kept):
        assert (place == salt).all()


def test_in_place(comm: Intracomm) -> None:
    """This rank's block may lie in its place before the call."""
    rank, size = comm.Get_rank(), comm.Get_size()
    for nothing in (None, MPI.IN_PLACE):
        for nbytes in (0, 1, 513, 10_000):
            place = np.zeros((size, nbytes), np.uint8)
            place[rank] = block_of(rank, nbytes)
            comm.Allgather(nothing, place)
            for each in range(size):
                assert np.array_equal(place[each], block_of(each, nbytes))


def test_sending_ones_own_place(comm: Intracomm) -> None:
    """Sending this rank's place in recvbuf, a frequent slip, is harmless."""
    rank, size = comm.Get_rank(), comm.Get_size()
    place = np.zeros((size, 1000), np.uint8)
    place[rank] = block_of(rank, 1000)
    comm.Allgather(place[rank], place)
    assert all(np.array_equal(place[r], block_of(r, 1000)) for r in range(size))


def test_ranks_far_apart(comm: Intracomm) -> None:
    """Ranks may enter in any order, and communicate between operations."""
    rank, size = comm.Get_rank(), comm.Get_size()
    token = np.zeros(1)
    for salt in range(size):
        # Rank `salt` enters only when all other ranks are about to enter.
        if rank == salt:
            for other in range(size):
                if other != rank:
                    MPI.COMM_WORLD.Recv(token, other, salt)
        else:
            MPI.COMM_WORLD.Send(token, salt, salt)
        check(comm, 3000, salt)


def test_among_other_collectives(comm: Intracomm) -> None:
    """The MPI library's own operations progress beside this library's."""
    rank, size = comm.Get_rank(), comm.Get_size()
    for salt in range(5):
        request = comm.Isend(np.full(100_000, salt), (rank + 1) % size)
        check(comm, 2000, salt)
        got = np.empty(100_000, int)
        comm.Recv(got, (rank - 1) % size)
        request.Wait()
        assert (got == salt).all()
        assert comm.allreduce(1) == size


def test_below_min_bytes(make: Make) -> None:
    """Blocks below MIN_BYTES go to the MPI library, on all ranks."""
    comm = make(min_bytes=1000)
    check(comm, 999)
    check(comm, 10)
    assert comm.stats()["epochs"] == 0
    check(comm, 1000)
    check(comm, 0)
    assert comm.stats()["epochs"] == (1 if comm.Get_size() > 1 else 0)


def test_nothing_allocated_twice(comm: Intracomm) -> None:
    """The second operation of a shape allocates no memory and opens nothing."""
    for nbytes in (100, 5000, 200_000):
        check(comm, nbytes)
        before = comm.stats()
        for salt in range(5):
            check(comm, nbytes, salt)
        after = comm.stats()
        assert after["allocations"] == before["allocations"]
        assert after["open_ns"] == before["open_ns"]
