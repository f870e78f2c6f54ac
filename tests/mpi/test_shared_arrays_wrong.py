# SPDX-License-Identifier: BSD-3-Clause
"""Wrong uses of arrays that the ranks of a node share: all ranks raise, none waits."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from forms import FORMS
from gathering import require_two_ranks
from mpi4py import MPI

import mpimcast
from mpimcast import Error, Intracomm

Make = Callable[..., Intracomm]


@pytest.fixture
def comm(make_comm: Make) -> Iterator[Intracomm]:
    """Yield a communicator whose ranks share memory; leave no array behind."""
    yield make_comm(transport="shm", chunk_bytes=0)
    gc.collect()


@pytest.fixture
def _hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait less for ranks to tell which operation they started, since some do not."""
    monkeypatch.setattr("mpimcast._session.streams._TELLING_S", 0.3)


# ---- different memory --------------------------------------------------------


# What the last rank passes instead of the first part of an array, given that array and
# another one; and what the error says of it.
WRONG: dict[str, tuple[Callable[[np.ndarray, np.ndarray], Any], str]] = {
    "private memory": (lambda shared, _: np.empty_like(shared[0]), "private memory"),
    "another part": (lambda shared, _: shared[1], "byte [1-9][0-9]* of a shared array"),
    "another array": (lambda _, other: other[0], "byte 0 of a shared array"),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["Allgather", "Allgatherv"])
@pytest.mark.parametrize("wrong", WRONG)
def test_memory_that_differs(comm: Intracomm, form: str, name: str, wrong: str) -> None:
    """All ranks raise an error that says which rank passed which memory."""
    require_two_ranks(comm)
    size, last = comm.size, comm.size - 1
    shared = mpimcast.empty((2, size, 700), comm=comm)
    other = mpimcast.empty((2, size, 700), comm=comm)
    take, words = WRONG[wrong]
    place = take(shared, other) if comm.rank == last else shared[0]
    text = (
        rf"the ranks disagree: the result goes to byte 0 of a shared array .* on rank.*"
        rf"{words}.* on rank {last}; the ranks of a node must pass the same shared"
    )
    with pytest.raises(Error, match=text) as caught:
        FORMS[form](comm, name, np.ones(700), place)
    assert caught.value.ranks == ((last,) if size > 2 else (0, 1))


@pytest.mark.usefixtures("_hurried")
@pytest.mark.parametrize("part", [0, 1])
def test_memory_of_a_bcast(comm: Intracomm, part: int) -> None:
    """The rank that differs raises; those that have the data, in the next operation."""
    require_two_ranks(comm)
    shared = mpimcast.empty((2, comm.size, 700), comm=comm)
    private = np.empty((comm.size, 700))
    place = shared[0]
    if comm.rank == comm.size - 1:
        place = shared[1] if part else private

    def call() -> None:
        comm.Bcast(place)
        comm.Allgather(np.ones(700), private)

    text = "the ranks of a node must pass the same shared memory"
    with pytest.raises(Error, match=text) as caught:
        call()
    assert caught.value.epoch == 1


def test_displacements_that_differ(comm: Intracomm) -> None:
    """Ranks that would put blocks in different places are told so."""
    require_two_ranks(comm)
    size = comm.size
    shared = mpimcast.empty((size, 700), comm=comm)
    places = [700 * rank for rank in range(size)]
    if comm.rank == size - 1:
        places[0], places[1] = places[1], places[0]
    with pytest.raises(Error, match="with displacements that hash to"):
        comm.Allgatherv(np.ones(700), [shared, [700] * size, places, MPI.DOUBLE])


def test_in_place_that_differs(comm: Intracomm) -> None:
    """Either all ranks pass MPI.IN_PLACE, or none does."""
    require_two_ranks(comm)
    shared = mpimcast.empty((comm.size, 700), comm=comm)
    send = MPI.IN_PLACE if comm.rank == comm.size - 1 else np.ones(700)
    with pytest.raises(Error, match=r"in place on rank"):
        comm.Allgather(send, shared)


@pytest.mark.usefixtures("_hurried")
def test_another_collective(comm: Intracomm) -> None:
    """A barrier does not match another collective."""
    require_two_ranks(comm)
    shared = mpimcast.empty((comm.size, 700), comm=comm)

    def call() -> None:
        if comm.rank == 0:
            comm.node_barrier()
        else:
            comm.Allgather(np.ones(700), shared)

    with pytest.raises(Error, match=r"node_barrier.*all must call the same collective"):
        call()


@pytest.mark.parametrize("count", [1, 5000])
@pytest.mark.parametrize("form", FORMS)
def test_foreign_arrays(comm: Intracomm, form: str, count: int) -> None:
    """An array of other ranks is refused before anything starts; all else goes on."""
    if comm.size < 3:
        pytest.skip("needs ranks of two kinds")
    shared = mpimcast.empty((comm.size, count), comm=comm)
    half = comm.Split(comm.rank % 2)
    half.Allgather(np.ones(count), np.empty((half.size, count)))
    part = shared[: half.size]
    for name, arguments in (
        ("Allgather", (np.ones(count), part)),
        ("Allgatherv", (np.ones(count), [part, [count] * half.size])),
        ("Bcast", (part,)),
    ):
        with pytest.raises(Error, match=r"cannot go into .*for another communicator"):
            FORMS[form](half, name, *arguments)
    comm.Allgather(np.full(count, float(comm.rank)), shared)
    assert shared[:, 0].tolist() == list(range(comm.size))
    half.Free()


@pytest.mark.parametrize("settings", [{"transport": "mpi"}, {"transport": "udp"}])
@pytest.mark.parametrize("form", FORMS)
def test_without_shared_memory(
    comm: Intracomm, make_comm: Make, settings: dict[str, str], form: str
) -> None:
    """A communicator that shares no memory refuses an array that ranks share."""
    require_two_ranks(comm)
    other = make_comm(**settings)
    shared = mpimcast.empty((comm.size, 50), comm=comm)
    other.Allgather(np.ones(50), np.empty((comm.size, 50)))
    for name, arguments in (
        ("Allgather", (np.ones(50), shared)),
        ("Allgatherv", (np.ones(50), [shared, [50] * comm.size])),
        ("Bcast", (shared,)),
    ):
        with pytest.raises(Error, match="in which no ranks share memory"):
            FORMS[form](other, name, *arguments)
    mine = mpimcast.empty(50, comm=other)
    assert not mpimcast.is_shared(mine)
    other.Bcast(mine)


def test_a_request_before_the_opening(comm: Intracomm) -> None:
    """A request on a duplicate that is not open says what to do."""
    require_two_ranks(comm)
    shared = mpimcast.empty((comm.size, 50), comm=comm)
    duplicate = comm.Dup()
    with pytest.raises(Error, match="no blocking collective has opened"):
        duplicate.Iallgather(np.ones(50), shared)
    duplicate.Free()


def test_gaps(comm: Intracomm) -> None:
    """A result with gaps is refused, since each rank would unpack it for itself."""
    require_two_ranks(comm)
    column = MPI.DOUBLE.Create_vector(50, 1, 3).Commit()
    shared = mpimcast.empty((comm.size, 200), comm=comm)
    with pytest.raises(Error, match="must have no gaps"):
        comm.Allgather(np.ones(50), [shared, 1, column])
    with pytest.raises(Error, match="must have no gaps"):
        comm.Bcast([shared, 1, column])
    comm.Bcast(shared)
    column.Free()


def test_communicators_of_the_library(mpi_comm: MPI.Intracomm) -> None:
    """Only communicators whose collectives know shared arrays can make some."""
    with pytest.raises(TypeError, match=r"pass an mpimcast\.Intracomm"):
        mpimcast.empty(3, comm=mpi_comm)  # type: ignore[arg-type]


@pytest.mark.parametrize("nbytes", [0, 8])
def test_different_shapes(comm: Intracomm, nbytes: int) -> None:
    """All ranks raise what differs, and can go on."""
    require_two_ranks(comm)
    last = comm.rank == comm.size - 1
    with pytest.raises(Error, match=r"an array of shape \(.*\) and dtype .* on rank"):
        mpimcast.empty((nbytes, 2 if last else 1), comm=comm)
    with pytest.raises(Error, match=r"dtype float32 on rank.* but .* dtype int32 on"):
        mpimcast.empty(3, "i4" if last else "f4", comm=comm)
    shared = mpimcast.empty(3, comm=comm)
    comm.Bcast(shared)


def test_too_much(comm: Intracomm) -> None:
    """All ranks raise the same error if one cannot have the memory."""
    require_two_ranks(comm)
    for shape in (1 << 61, 1 << 80):
        with pytest.raises(mpimcast.TransportError, match="cannot make an array"):
            mpimcast.empty(shape, "u1", comm=comm)
    comm.Bcast(mpimcast.empty(3, comm=comm))


def test_a_rank_that_cannot_map(
    comm: Intracomm, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All ranks raise the reason of the rank that fails, whichever it is."""
    require_two_ranks(comm)
    comm.node_barrier()
    engine = pytest.importorskip("mpimcast._native.engine")
    original = engine.map_file

    def fail(*_: object) -> None:
        raise mpimcast.TransportError("no room")

    for culprit in (0, comm.size - 1):
        monkeypatch.setattr(
            engine, "map_file", fail if comm.rank == culprit else original
        )
        with pytest.raises(mpimcast.TransportError, match=f"rank {culprit}: no room"):
            mpimcast.empty(3, comm=comm)
    monkeypatch.undo()
    comm.Bcast(mpimcast.empty(3, comm=comm))
