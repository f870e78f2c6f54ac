# SPDX-License-Identifier: BSD-3-Clause
"""Arrays that the ranks of a node share, as results of collectives."""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from forms import FORMS
from gathering import require_two_ranks
from mpi4py import MPI

import mpimcast
from mpimcast import Intracomm
from mpimcast._session.choice import Choice, Way

Make = Callable[..., Intracomm]


@pytest.fixture
def comm(make_comm: Make) -> Iterator[Intracomm]:
    """Yield a communicator whose ranks share memory; leave no array behind."""
    yield make_comm(transport="shm", chunk_bytes=0)
    gc.collect()


def blocks_of(size: int, count: int, salt: int = 0) -> np.ndarray:
    """Return the blocks of all ranks."""
    rows = 1000.0 * np.arange(size)[:, None] + salt
    return rows + np.arange(count)


# ---- results -----------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("count", [1, 1000, 100_003])
def test_results(comm: Intracomm, form: str, count: int) -> None:
    """Each collective delivers what it delivers into private memory."""
    rank, size, run = comm.rank, comm.size, FORMS[form]
    shared = mpimcast.empty((size, count), comm=comm)
    assert mpimcast.is_shared(shared) == (size > 1)
    blocks = blocks_of(size, count)
    run(comm, "Allgather", blocks[rank].copy(), shared)
    assert np.array_equal(shared, blocks)
    comm.node_barrier()
    shared[rank] = blocks[rank] + 1
    run(comm, "Allgather", MPI.IN_PLACE, shared)
    assert np.array_equal(shared, blocks + 1)
    counts = [count - (each % 2) for each in range(size)]
    places = [count * each for each in range(size)]
    own = blocks[rank][: counts[rank]] + 2
    run(comm, "Allgatherv", own.copy(), [shared, counts, places, MPI.DOUBLE])
    for each in range(size):
        assert np.array_equal(
            shared[each][: counts[each]], blocks[each][: counts[each]] + 2
        )
    for root in range(size):
        comm.node_barrier()
        if rank == root:
            shared[...] = blocks + 3 + root
        run(comm, "Bcast", shared, root)
        assert np.array_equal(shared, blocks + 3 + root)


def test_nothing_is_copied(comm: Intracomm) -> None:
    """No rank copies what others contribute, and no rank copies into the segment."""
    require_two_ranks(comm)
    shared = mpimcast.empty((comm.size, 50_000), comm=comm)
    comm.Allgather(np.ones(50_000), shared)
    comm.Bcast(shared)
    counters = comm.stats()
    assert counters["node_operations"] == 2
    assert counters["node_tx_bytes"] == counters["node_rx_bytes"] == 0


@pytest.mark.parametrize("count", [3, 9000])
def test_parts(comm: Intracomm, count: int) -> None:
    """A part of an array is a result as well, and the rest is not touched."""
    rank, size = comm.rank, comm.size
    steps = mpimcast.empty((5, size, count), comm=comm)
    if rank == 0:
        steps.fill(-1)
    comm.node_barrier()
    for step in (3, 1):
        comm.Allgather(blocks_of(size, count, step)[rank], steps[step])
        comm.Bcast(steps[step + 1, 0], root=size - 1)
    for step in (3, 1):
        assert np.array_equal(steps[step], blocks_of(size, count, step))
    assert (steps[[0, 2, 4]] == -1).all()


def test_other_forms_of_one_buffer(comm: Intracomm) -> None:
    """A shared array is known by its memory, whatever object stands for it."""
    size, rank = comm.size, comm.rank
    shared = mpimcast.empty((size, 800), "i4", comm=comm)
    views = [
        np.asarray(shared),
        memoryview(shared),
        shared.reshape(-1).view("f4"),
        [MPI.buffer.frombuffer(shared), MPI.INT],
        [shared, 800, MPI.INT],
        (shared, MPI.INT),
    ]
    for salt, view in enumerate(views):
        block = np.full(800, 10 * salt + rank, "i4")
        comm.Allgather([block, MPI.INT], view)
        assert shared[:, 0].tolist() == [10 * salt + each for each in range(size)]
    assert comm.stats()["node_rx_bytes"] == 0


def test_gaps_between_sent_numbers(comm: Intracomm) -> None:
    """A block with gaps is packed, but not before the ranks may write."""
    size, rank = comm.size, comm.rank
    column = MPI.DOUBLE.Create_vector(50, 1, 3).Commit()
    shared = mpimcast.empty((size, 50), comm=comm)
    for salt in range(20):
        table = np.full((50, 3), -1.0)
        table[:, 0] = salt + rank
        comm.Allgather([table, 1, column], [shared, 50, MPI.DOUBLE])
        assert (shared == salt + np.arange(size)[:, None]).all()
    column.Free()


@pytest.mark.parametrize("nbytes", [1, 2000])
def test_small_results(make_comm: Make, nbytes: int) -> None:
    """What goes into shared arrays goes by shared memory, even below MIN_BYTES."""
    comm = make_comm(transport="shm", min_bytes=1 << 20, chunk_bytes=0)
    shared = mpimcast.empty((comm.size, nbytes), "u1", comm=comm)
    private = np.empty((comm.size, nbytes), "u1")
    for turn in range(3):
        block = np.full(nbytes, 7 * turn + comm.rank, "u1")
        comm.Allgather(block, shared)
        comm.Allgather(block, private)
        assert np.array_equal(shared, private)
        comm.Bcast(shared)
    operations = comm.stats()["node_operations"]
    assert operations == (6 if comm.size > 1 else 0)


def test_whatever_was_faster(make_comm: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """What goes into shared arrays is mpimcast's, whatever trials have found."""
    comm = make_comm(transport="shm,mpi", choice="measure", chunk_bytes=0)
    require_two_ranks(comm)
    shared = mpimcast.empty((comm.size, 900), comm=comm)
    private = np.empty((comm.size, 900))
    block = np.full(900, comm.rank + 1.0)
    for _ in range(12):
        comm.Allgather(block, private)
    monkeypatch.setattr(Choice, "way", lambda *_: Way.LIBRARY)
    monkeypatch.setattr(Choice, "expected_way", lambda *_: Way.LIBRARY)
    before = comm.stats()["node_operations"]
    for form in FORMS.values():
        shared[comm.rank] = 0
        form(comm, "Allgather", block, shared)
        assert np.array_equal(shared, private)
        comm.node_barrier()
        form(comm, "Allgatherv", block, [shared, [900] * comm.size])
        form(comm, "Bcast", shared)
        comm.node_barrier()
    assert comm.stats()["node_operations"] == before + 3 * len(FORMS)


def test_no_bytes(comm: Intracomm) -> None:
    """Arrays without bytes, and results without bytes, do no harm."""
    nothing = mpimcast.empty((0, 7), comm=comm)
    assert nothing.shape == (0, 7)
    assert not mpimcast.is_shared(nothing)
    some = mpimcast.empty(10, comm=comm)
    comm.Bcast(some[5:5])
    comm.Allgather(np.empty(0), some[:0])
    comm.Allgatherv(np.empty(0), [some, [0] * comm.size])
    comm.Allgather(MPI.IN_PLACE, some[10:])


def test_zero_counts(comm: Intracomm) -> None:
    """Ranks without a block of their own take part."""
    counts = [0] * (comm.size - 1) + [500]
    shared = mpimcast.empty(500, comm=comm)
    own = np.arange(counts[comm.rank], dtype=float)
    comm.Allgatherv([own, counts[comm.rank], MPI.DOUBLE], [shared, counts])
    assert np.array_equal(shared, np.arange(500.0))


# ---- nothing is torn ---------------------------------------------------------


def stall(rng: random.Random) -> None:
    """Now and then, let the others get far ahead."""
    if rng.random() < 0.1:
        time.sleep(rng.random() * 0.003)


def test_allgathers_without_barriers(comm: Intracomm, seed: int) -> None:
    """A rank reads a result until it enters the next operation, and sees no other."""
    rng = random.Random(f"{seed} {comm.rank}")
    size, count = comm.size, 3000
    shared = mpimcast.empty((size, count), "i4", comm=comm)
    rows = np.arange(size, dtype="i4")[:, None]
    for turn in range(300):
        comm.Allgather(np.full(count, turn * size + comm.rank, "i4"), shared)
        for _ in range(3):
            assert (shared == turn * size + rows).all(), turn
            stall(rng)


def test_barriers_before_writing(comm: Intracomm, seed: int) -> None:
    """Roots and ranks in place write after a barrier, and nobody sees it too early."""
    rng = random.Random(f"{seed} {comm.rank}")
    size, rank, count = comm.size, comm.rank, 3000
    shared = mpimcast.empty((size, count), "i4", comm=comm)
    rows = np.arange(size, dtype="i4")[:, None]
    for turn in range(150):
        comm.node_barrier()
        shared[rank] = turn * size + rank
        comm.Allgather(MPI.IN_PLACE, shared)
        assert (shared == turn * size + rows).all(), turn
        stall(rng)
        comm.node_barrier()
        root = turn % size
        if rank == root:
            shared.fill(-turn)
        comm.Bcast(shared, root)
        assert (shared == -turn).all(), turn
        stall(rng)
        assert (shared == -turn).all(), turn


def test_requests_into_several_arrays(comm: Intracomm, seed: int) -> None:
    """Operations in flight, in several arrays, do not disturb results being read."""
    rng = random.Random(f"{seed} {comm.rank}")
    size, count = comm.size, 2000
    arrays = [mpimcast.empty((size, count), "i4", comm=comm) for _ in range(3)]
    rows = np.arange(size, dtype="i4")[:, None]
    comm.node_barrier()
    requests: dict[int, Any] = {}
    for turn in range(90):
        block = np.full(count, turn * size + comm.rank, "i4")
        requests[turn] = comm.Iallgather(block, arrays[turn % 3])
        if turn > 1:
            requests.pop(turn - 2).Wait()
            assert (arrays[(turn - 2) % 3] == (turn - 2) * size + rows).all(), turn
            stall(rng)
    MPI.Request.Waitall(list(requests.values()))
    assert (arrays[89 % 3] == 89 * size + rows).all()


# ---- the barrier of a node ---------------------------------------------------


def test_node_barrier(comm: Intracomm, seed: int) -> None:
    """No rank leaves a barrier before all have entered it."""
    rng = random.Random(f"{seed} {comm.rank}")
    turns = mpimcast.empty(comm.size, "i8", comm=comm)
    if not mpimcast.is_shared(turns):
        turns = np.zeros(1, "i8")
    mine = comm.rank % turns.size
    turns[mine] = 0
    comm.node_barrier()
    for turn in range(1, 200):
        stall(rng)
        turns[mine] = turn
        comm.node_barrier()
        assert turns.min() >= turn
        comm.node_barrier()


def test_node_barrier_first(make_comm: Make) -> None:
    """A barrier may be the first collective, and needs no shared memory."""
    for settings in (
        {"transport": "shm", "chunk_bytes": 0},
        {"transport": "udp"},
        {"transport": "mpi"},
        {"transport": "udp", "node_bytes": 0},
    ):
        comm = make_comm(**settings)
        comm.node_barrier()
        comm.node_barrier()
        comm.Allgather(np.ones(3), np.empty((comm.size, 3)))


# ---- other communicators -----------------------------------------------------


def test_same_processes(comm: Intracomm) -> None:
    """Communicators of the same ranks of a node may use the same array."""
    size = comm.size
    shared = mpimcast.empty((size, 900), "i4", comm=comm)
    others = [
        comm.Dup(),
        comm.Split_type(MPI.COMM_TYPE_SHARED),
        comm.Split(0, key=-comm.rank),
    ]
    for salt, other in enumerate(others):
        comm.node_barrier()
        other.Allgather(np.full(900, other.rank + salt, "i4"), shared)
        assert shared[:, 0].tolist() == [each + salt for each in range(size)]
        comm.node_barrier()
        other.Bcast(shared[0, :2], root=size - 1)
        other.node_barrier()
        other.Free()


def test_forms_take_turns(comm: Intracomm, seed: int) -> None:
    """All collectives in all forms, in random order, equal the MPI library's."""
    rng = random.Random(seed)
    size, rank = comm.size, comm.rank
    shared = mpimcast.empty((4, size, 500), "i4", comm=comm)
    expected = np.zeros((4, size, 500), "i4")
    if rank == 0:
        shared.fill(0)
    comm.node_barrier()
    for turn in range(1, 60):
        part, root = rng.randrange(4), rng.randrange(size)
        form = FORMS[rng.choice(list(FORMS))]
        block = np.full(500, turn * size + rank, "i4")
        if rng.random() < 0.5:
            form(comm, "Allgather", block, shared[part])
            MPI.Intracomm.Allgather(comm, block, expected[part])
        else:
            comm.node_barrier()
            if rank == root:
                shared[part] = expected[part] = turn
            form(comm, "Bcast", shared[part], root)
            MPI.Intracomm.Bcast(comm, expected[part], root)
        assert np.array_equal(shared, expected)
        comm.node_barrier()
