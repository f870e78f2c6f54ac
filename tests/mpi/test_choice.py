# SPDX-License-Identifier: BSD-3-Clause
"""The choice between mpimcast and the MPI library, as programs meet it."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from gathering import require_two_ranks, started
from mpi4py import MPI

from mpimcast import Intracomm
from mpimcast._session import trials

# A class of sizes is decided after at most as many calls.
TRIALS = 8


@pytest.fixture
def make(mpi_comm: MPI.Intracomm) -> Iterator[Callable[..., Intracomm]]:
    """Yield a function that makes communicators which choose; free them at the end."""
    made = []

    def make_one(**settings: object) -> Intracomm:
        made.append(Intracomm(mpi_comm.Dup(), **settings))
        return made[-1]

    yield make_one
    for comm in made:
        if comm != MPI.COMM_NULL:
            comm.Free()


def blocks_of(comm: Intracomm, nbytes: int, step: int) -> np.ndarray:
    """Return the blocks of all ranks in a step, by rank."""
    seeds = [(step, rank, nbytes) for rank in range(comm.size)]
    return np.stack(
        [np.random.default_rng(seed).integers(0, 256, nbytes, "u1") for seed in seeds]
    )


def gather(comm: Intracomm, nbytes: int, step: int) -> None:
    """Gather blocks, and check them."""
    blocks = blocks_of(comm, nbytes, step)
    place = np.zeros_like(blocks)
    comm.Allgather(blocks[comm.rank].copy(), place)
    assert np.array_equal(place, blocks)


def test_all_ranks_learn_the_same(make: Callable[..., Intracomm]) -> None:
    """Whatever is decided, and whatever it is measured by, is so on all ranks."""
    comm = make()
    require_two_ranks(comm)
    for step in range(TRIALS + 2):
        gather(comm, 10_000, step)
    said = comm.explain(10_000).reason
    assert "Allgather measured: mpimcast" in said
    assert set(comm.allgather(said)) == {said}
    assert "measured" not in comm.explain(100_000).reason


@pytest.mark.parametrize("chosen", ["measure", "always", "never"])
def test_every_call_is_counted_once(
    make: Callable[..., Intracomm], chosen: str
) -> None:
    """A call is a trial, or one of a way, or small, in which case it is not timed."""
    comm = make(min_bytes=4096, choice=chosen)
    require_two_ranks(comm)
    for step in range(20):
        gather(comm, 10_000, step)
        gather(comm, 100, step)
        comm.Bcast(np.zeros(5000, "u1"))
    stats = comm.stats()
    ways = {name: stats[name] for name in stats if f"{name}_ns" in stats}
    ways = {
        name: count for name, count in ways.items() if name[:5] in ("calls", "trial")
    }
    assert len(ways) == 4
    assert sum(ways.values()) + stats["calls_small"] == 60
    assert stats["calls_small"] >= 19  # the first may have come before the opening
    for name, count in ways.items():
        assert (stats[f"{name}_ns"] > 0) == (count > 0)
    if chosen == "always":
        assert ways["calls_ours"] == 40
    if chosen == "never":
        assert ways["calls_ours"] == 0


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("transport", ["auto", "udp,mpi"])
def test_a_changing_choice(
    make: Callable[..., Intracomm],
    monkeypatch: pytest.MonkeyPatch,
    transport: str,
    seed: int,
) -> None:
    """Calls of all forms and sizes have the right results while the choice changes.

    On one node it does not change any more once it is made.
    """
    monkeypatch.setattr(trials, "_CALLS_UNTIL_RETRIAL", 2)
    monkeypatch.setattr(trials, "_TRIALS_MAX", 3)
    comm = make(transport=transport, min_bytes=4096)
    draw = random.Random(seed)
    for step in range(60):
        nbytes = draw.choice([0, 100, 4095, 4096, 9000, 70_000, 300_000])
        form = draw.choice(["Allgather", "Bcast", "Iallgather", "v", "object"])
        blocks = blocks_of(comm, nbytes, step)
        own, place = blocks[comm.rank].copy(), np.zeros_like(blocks)
        if form == "Allgather":
            comm.Allgather(own, place)
        elif form == "Iallgather":
            comm.Iallgather(own, place).Wait()
        elif form == "v":
            comm.Allgatherv(own, [place, [nbytes] * comm.size])
        elif form == "object":
            place = np.stack(comm.allgather(own))
        else:
            root = draw.randrange(comm.size)
            if comm.rank == root:
                place[:] = blocks
            comm.Bcast(place, root)
        assert np.array_equal(place, blocks), (step, form, nbytes)


@pytest.mark.parametrize("transport", ["auto", "udp,mpi"])
def test_ranks_that_take_other_ways_to_c(
    make: Callable[..., Intracomm], monkeypatch: pytest.MonkeyPatch, transport: str
) -> None:
    """Ranks agree though now and then one passes what the shortest way does not take.

    The trials of a class are then run by C on some ranks, and by Python on others.
    """
    monkeypatch.setattr(trials, "_CALLS_UNTIL_RETRIAL", 3)
    comm = make(transport=transport, min_bytes=4096)
    draw = random.Random(7)
    own_draw = random.Random(comm.rank)
    for step in range(60):
        nbytes = draw.choice([5000, 10_000, 20_000])
        blocks = blocks_of(comm, nbytes, step)
        place = np.zeros_like(blocks)
        own, all_bytes = blocks[comm.rank].copy(), place
        if own_draw.random() < 0.5:
            own, all_bytes = [own, MPI.BYTE], [place, MPI.BYTE]
        comm.Allgather(own, all_bytes)
        assert np.array_equal(place, blocks)
        data = blocks[0] if comm.rank == 0 else np.zeros(nbytes, "u1")
        data.flags.writeable = comm.rank != 0
        comm.Bcast([data, MPI.BYTE] if own_draw.random() < 0.5 else data)
        assert np.array_equal(data, blocks[0])


def test_forced(make: Callable[..., Intracomm]) -> None:
    """CHOICE=always and a TRANSPORT without mpi leave no call to the MPI library."""
    for settings in ({"choice": "always"}, {"transport": "shm"}):
        comm = make(**settings)
        require_two_ranks(comm)
        for step in range(TRIALS + 2):
            gather(comm, 10_000, step)
        assert started(comm) == TRIALS + 2


def test_never(make: Callable[..., Intracomm]) -> None:
    """CHOICE=never leaves all calls to the MPI library, unless TRANSPORT forbids it."""
    comm = make(choice="never")
    require_two_ranks(comm)
    gather(comm, 10_000, 0)
    assert str(comm.explain(10_000)) == "mpi: CHOICE=never"
    comm = make(choice="never", transport="shm")
    gather(comm, 10_000, 0)
    assert started(comm) == 1


def test_a_file_keeps_what_was_measured(
    make: Callable[..., Intracomm], mpi_comm: MPI.Intracomm, tmp_path: Path
) -> None:
    """A later communicator begins with what an earlier one has measured."""
    file = mpi_comm.bcast(str(tmp_path / "choice.json"))
    comm = make(choice=file)
    require_two_ranks(comm)
    for step in range(TRIALS + 1):
        gather(comm, 10_000, step)
    before = started(comm)
    gather(comm, 10_000, 0)
    ours = started(comm) - before
    comm.Free()
    mpi_comm.Barrier()
    (known,) = json.loads(Path(file).read_text()).values()
    assert known == {"Allgather": {"14": "ours" if ours else "mpi"}}
    later = make(choice=file)
    gather(later, 10_000, 0)
    # A call that is no trial starts one operation or none.
    assert started(later) == ours


def test_a_spoilt_file_is_not_used(
    make: Callable[..., Intracomm], mpi_comm: MPI.Intracomm, tmp_path: Path
) -> None:
    """What cannot be read is replaced, and the ranks still choose alike."""
    path = Path(mpi_comm.bcast(str(tmp_path / "choice.json")))
    if mpi_comm.Get_rank() == 0:
        path.write_text("{not JSON")
    mpi_comm.Barrier()
    comm = make(choice=str(path), log="error")
    require_two_ranks(comm)
    for step in range(TRIALS):
        gather(comm, 10_000, step)
    comm.Free()
    mpi_comm.Barrier()
    assert json.loads(path.read_text())
