# SPDX-License-Identifier: BSD-3-Clause
"""Collectives of known data, whose blocks are read as they land."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

import numpy as np
from gathering import Gathering
from mpi4py import MPI

COUNTS = (0, 1, 300, 20_000)


class Result:
    """A collective of known data, and its request.

    Parameters
    ----------
    comm
        The communicator.
    name
        Iallgather, Iallgatherv or Ibcast, or the former two in place.
    count
        How many numbers of 4 bytes a block has, of an Iallgatherv at most.
    salt
        Makes the data differ from that of other collectives.
    """

    def __init__(self, comm: MPI.Intracomm, name: str, count: int, salt: int) -> None:
        rank, size = comm.Get_rank(), comm.Get_size()
        self.root = salt % size
        self.ranks = [self.root] if name == "Ibcast" else list(range(size))
        self.blocks = {
            each: np.arange(count, dtype=np.int32) * 3 + 1000 * each + 7 * salt
            for each in self.ranks
        }
        begins = dict.fromkeys(self.ranks, 0)
        end = count
        if name == "Iallgatherv":
            # Of other sizes, some of them 0, in the order of ranks turned round.
            end = 2
            for each in reversed(self.ranks):
                block = self.blocks[each]
                self.blocks[each] = block[: (each + salt) % 3 * len(block) // 2]
                begins[each] = end
                end += len(self.blocks[each]) + each
        elif name != "Ibcast":
            begins = {each: each * count for each in self.ranks}
            end = size * count
        self.place = np.full(end, -1, np.int32)
        self.begins = begins
        arguments: tuple[object, ...] = (self.blocks.get(rank), self.place)
        if name == "Ibcast":
            arguments = (self.place, self.root)
        elif name == "Iallgatherv":
            counts = [len(self.blocks[each]) for each in self.ranks]
            arguments = (
                self.blocks[rank],
                [self.place, counts, [begins[each] for each in self.ranks], MPI.INT],
            )
        if name == "in place" or (name == "Ibcast" and rank == self.root):
            self.view(rank)[:] = self.blocks[rank]
        if name == "in place":
            arguments = (MPI.IN_PLACE, self.place)
        self.arguments = arguments
        self.name = "Iallgather" if name == "in place" else name

    def view(self, rank: int) -> np.ndarray:
        """Return the place of a rank's block."""
        begin = self.begins[rank]
        return self.place[begin : begin + len(self.blocks[rank])]

    def check(self, rank: int) -> None:
        """Assert that a rank's block is in its place."""
        assert np.array_equal(self.view(rank), self.blocks[rank]), rank

    def expected(self) -> np.ndarray:
        """Return what the buffer has in the end."""
        whole = np.full_like(self.place, -1)
        for rank in self.ranks:
            begin = self.begins[rank]
            whole[begin : begin + len(self.blocks[rank])] = self.blocks[rank]
        return whole

    def start(self, comm: MPI.Intracomm) -> MPI.Request:
        """Start the collective."""
        return getattr(comm, self.name)(*self.arguments)


NAMES = ("Iallgather", "Iallgatherv", "Ibcast", "in place")


def results(comm: MPI.Intracomm) -> Iterator[Result]:
    """Yield results of all kinds and sizes."""
    for salt, count in enumerate(COUNTS):
        for name in NAMES:
            yield Result(comm, name, count, salt + len(name))


def take(request: MPI.Request, result: Result) -> list[int]:
    """Iterate over a request's blocks, and check each."""
    order = []
    for rank in request.blocks():
        result.check(rank)
        order.append(rank)
    return order


async def take_async(request: MPI.Request, result: Result) -> list[int]:
    """Iterate over a request's blocks in a coroutine, and check each."""
    order = []
    async for rank in request.blocks():
        result.check(rank)
        order.append(rank)
    return order


def take_by_callback(request: MPI.Request, result: Result) -> list[int]:
    """Have blocks checked by a callback."""
    order: list[int] = []

    def note(rank: int) -> None:
        result.check(rank)
        order.append(rank)

    request.on_block(note)
    request.Wait()
    return order


TAKERS: dict[str, Callable[[MPI.Request, Result], list[int]]] = {
    "for": take,
    "async for": lambda request, result: asyncio.run(take_async(request, result)),
    "on_block": take_by_callback,
}


def bits_of(request: MPI.Request) -> np.ndarray:
    """Return a bit for each chunk."""
    words = request.present.view(np.uint8)
    return np.unpackbits(words, count=request.chunks, bitorder="little")


def check_blocks(comm: MPI.Intracomm, how: str) -> None:
    """Check each block of all collectives when it is announced, and all once more."""
    for result in results(comm):
        request = result.start(comm)
        order = TAKERS[how](request, result)
        assert sorted(order) == result.ranks
        if result.name == "Iallgather":
            assert order[0] == comm.rank
        request.Wait()
        assert request == MPI.REQUEST_NULL
        assert take(request, result) == order
        assert np.array_equal(result.place, result.expected())


def check_present(comm: MPI.Intracomm, mpi_comm: MPI.Intracomm) -> None:
    """Check that bits only grow, cover what has landed, and are all set at last."""
    result = Result(comm, "Iallgather", 20_000, 1)
    # When the other ranks look first, rank 0 has not started.
    if comm.rank == 0:
        mpi_comm.Barrier()
    request = result.start(comm)
    nchunks = -(-20_000 * 4 // 512)
    before = bits_of(request)
    if comm.rank != 0:
        assert len(before) == nchunks * comm.size
        mpi_comm.Barrier()
    for rank in request.blocks():
        after = bits_of(request)
        if comm.rank != 0:
            assert after[rank * nchunks : (rank + 1) * nchunks].all()
            assert not (before & ~after).any()
        before = after
    request.Wait()
    assert bits_of(request).all()


def check_restarts(request: MPI.Prequest, each: Gathering) -> None:
    """Check that a persistent request tells of the operation started last."""
    for salt in range(5):
        each.fill(salt)
        request.Start()
        for rank in request.blocks():
            assert each.place[rank, -1] == 2999 + 1000 * rank + 7 * salt
        request.Wait()
        assert len(list(request.blocks())) == len(each.place)
        each.check()


def check_many(comm: MPI.Intracomm) -> None:
    """Check blocks of operations that have not begun yet, the last one first."""
    made = [Result(comm, "Iallgather", 500, salt) for salt in range(12)]
    requests = [each.start(comm) for each in made]
    for request, result in reversed(list(zip(requests, made, strict=True))):
        take(request, result)
    MPI.Request.Waitall(requests)


class Mishap(Exception):
    """What a callback raises."""
