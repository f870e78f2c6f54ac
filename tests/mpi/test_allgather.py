# SPDX-License-Identifier: BSD-3-Clause
"""Allgather delivers every byte, whatever the size and whatever is lost."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from gathering import started
from mpi4py import MPI

from mpimcast import Intracomm

# Bytes on either side of the gathered blocks that an Allgather must not write.
GUARD_BYTES = 64
# A value of the setting FAULT.
LOSSY = "loss=0.1,dup=0.02,reorder=0.05"

Make = Callable[..., Intracomm]


def block_of(rank: int, nbytes: int, salt: int = 0) -> np.ndarray:
    """Return a rank's block: random bytes that follow from rank, size and salt."""
    return np.random.default_rng((rank, nbytes, salt)).integers(
        0, 256, nbytes, np.uint8
    )


def gather_and_check(comm: MPI.Intracomm, nbytes: int, salt: int = 0) -> None:
    """Gather `nbytes` of each rank; check every byte, and that no other is written.

    Parameters
    ----------
    salt
        Makes the data differ from that of other calls.
    """
    size = comm.Get_size()
    guarded = np.full(size * nbytes + 2 * GUARD_BYTES, 0xA5, np.uint8)
    place = guarded[GUARD_BYTES : GUARD_BYTES + size * nbytes]
    comm.Allgather(block_of(comm.Get_rank(), nbytes, salt), place)
    expected = np.concatenate([block_of(rank, nbytes, salt) for rank in range(size)])
    wrong = np.flatnonzero(place != expected)
    assert wrong.size == 0, f"{nbytes} bytes: {wrong.size} wrong from {wrong[0]} on"
    assert (guarded[:GUARD_BYTES] == 0xA5).all()
    assert (guarded[-GUARD_BYTES:] == 0xA5).all()


# Chunks have 512 bytes; 7919 and 65537 are prime.
SIZES = (0, 1, 2, 7, 511, 512, 513, 1023, 1024, 1025, 4096, 7919, 65537)


@pytest.mark.parametrize("settings", [{}, {"eager_bytes": 0}, {"chunk_bytes": 0}])
def test_sizes(make_comm: Make, settings: dict[str, object]) -> None:
    """Blocks of any size are gathered: none, one byte, just below and above chunks."""
    comm = make_comm(**settings)
    for nbytes in SIZES:
        gather_and_check(comm, nbytes)
    if comm.Get_size() > 1:
        assert started(comm) == len(SIZES)


def test_a_mebibyte(make_comm: Make) -> None:
    """A block as large as FSDP's is gathered, in chunks as large as the path takes."""
    comm = make_comm(chunk_bytes=0)
    gather_and_check(comm, 1 << 20)


@pytest.mark.parametrize(
    "settings",
    [
        {"chains": "all"},
        {"chains": 2},
        {"chains": 3, "subgroups": 3},
        {"subgroups": 3, "workers": "on"},
        {"window_bytes": "64K"},
        {"checksum": "off"},
        {"checksum": "full"},
        {"repair": "neighbour"},
    ],
    ids=str,
)
@pytest.mark.parametrize("fault", ["", LOSSY])
def test_settings(
    make_comm: Make, settings: dict[str, object], fault: str, seed: int
) -> None:
    """The result is the same under all settings, with and without loss."""
    comm = make_comm(**settings, fault=f"{fault},seed={seed}" if fault else "")
    for nbytes in (0, 1, 1300, 40_000):
        gather_and_check(comm, nbytes)


@pytest.mark.network
@pytest.mark.parametrize("repair", ["nak", "neighbour"])
def test_loss(make_comm: Make, repair: str, seed: int, long: bool) -> None:
    """Injected loss, duplication and reordering leave the data right.

    The counters of stats() show that chunks were lost and repaired.
    """
    comm = make_comm(repair=repair, fault=f"{LOSSY},seed={seed}")
    random = np.random.default_rng(seed)
    for salt in range(200 if long else 20):
        gather_and_check(comm, int(random.integers(0, 30_000)), salt)
    stats = comm.stats()
    if comm.Get_size() > 1:
        assert stats["rx_lost_chunks"] > 0
        assert stats["rx_repaired_chunks"] > 0


@pytest.mark.parametrize("kind", ["multicast", "control", "repair", "all"])
def test_loss_of_a_kind(make_comm: Make, kind: str, seed: int) -> None:
    """The data is right even if 30 % of the datagrams of one kind are lost."""
    comm = make_comm(
        fault=f"loss=0.3,kind={kind},seed={seed};loss=0.05,seed={seed + 1}"
    )
    for salt, nbytes in enumerate((0, 10, 1300, 9000, 40_000)):
        gather_and_check(comm, nbytes, salt)


@pytest.mark.network
def test_corruption(make_comm: Make, seed: int) -> None:
    """CHECKSUM=full finds every datagram that was changed in transit."""
    comm = make_comm(checksum="full", protect="off", fault=f"corrupt=0.1,seed={seed}")
    for salt in range(5):
        gather_and_check(comm, 20_000, salt)
    if comm.Get_size() > 1:
        assert comm.stats()["rx_corrupt_datagrams"] > 0


def test_a_straggler_catches_up(make_comm: Make, seed: int) -> None:
    """A rank that receives nothing for 5 ms of every 25 gets everything."""
    comm = make_comm(fault=f"stall_ms=5,loss=0.02,rank=0,seed={seed}")
    for salt in range(3):
        gather_and_check(comm, 20_000, salt)


def test_buffers_may_change_after_return(comm: Intracomm) -> None:
    """After the return the block may change, and nothing writes to the result."""
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
    """This rank's block may already be in recvbuf; sendbuf says so in two ways."""
    rank, size = comm.Get_rank(), comm.Get_size()
    for sendbuf in (None, MPI.IN_PLACE):
        for nbytes in (0, 1, 513, 10_000):
            place = np.zeros((size, nbytes), np.uint8)
            place[rank] = block_of(rank, nbytes)
            comm.Allgather(sendbuf, place)
            for each in range(size):
                assert np.array_equal(place[each], block_of(each, nbytes))


def test_sending_ones_own_place(comm: Intracomm) -> None:
    """A sendbuf that is part of recvbuf, a frequent slip, does no harm."""
    rank, size = comm.Get_rank(), comm.Get_size()
    place = np.zeros((size, 1000), np.uint8)
    place[rank] = block_of(rank, 1000)
    comm.Allgather(place[rank], place)
    assert all(np.array_equal(place[r], block_of(r, 1000)) for r in range(size))


def test_ranks_enter_in_any_order(comm: Intracomm) -> None:
    """Any rank may be the last to enter; the others send it a message before."""
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
        gather_and_check(comm, 3000, salt)


def test_among_other_collectives(comm: Intracomm) -> None:
    """Messages and collectives of the MPI library work beside those of mpimcast."""
    rank, size = comm.Get_rank(), comm.Get_size()
    for salt in range(5):
        request = comm.Isend(np.full(100_000, salt), (rank + 1) % size)
        gather_and_check(comm, 2000, salt)
        got = np.empty(100_000, int)
        comm.Recv(got, (rank - 1) % size)
        request.Wait()
        assert (got == salt).all()
        assert comm.allreduce(1) == size


def test_below_min_bytes(make_comm: Make) -> None:
    """Blocks below MIN_BYTES go to the MPI library, on all ranks."""
    comm = make_comm(min_bytes=1000)
    gather_and_check(comm, 999)
    gather_and_check(comm, 10)
    assert started(comm) == 0
    gather_and_check(comm, 1000)
    gather_and_check(comm, 0)
    assert started(comm) == (1 if comm.Get_size() > 1 else 0)


def test_nothing_allocated_twice(comm: Intracomm) -> None:
    """Once blocks of a size were gathered, further ones allocate and open nothing."""
    for nbytes in (100, 5000, 200_000):
        gather_and_check(comm, nbytes)
        before = comm.stats()
        for salt in range(5):
            gather_and_check(comm, nbytes, salt)
        after = comm.stats()
        assert after["allocations"] == before["allocations"]
        assert after["open_ns"] == before["open_ns"]
