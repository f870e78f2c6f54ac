# SPDX-License-Identifier: BSD-3-Clause
"""Random collectives of one rank, whose buffers lie on the device or on the host.

All ranks draw the same cases: the collective, its form and its sizes, and for each rank
where its buffers lie. The last rank has no driver, and so only buffers of the host. The
arguments are the seed, the number of cases, and the settings as ``name=value``.
"""

from __future__ import annotations

import random
import sys
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import arrays
import numpy as np
from mpi4py import MPI

import mpimcast
from mpimcast._session import cutting

# Small, so that some cases have many pieces and others have one.
PIECE_BYTES = 8 << 10

WHERE = ("host", "CUDA array", "DLPack")
FORMS = ("blocking", "nonblocking", "persistent")
SIZES = (0, 1, 100, 1000, 4096, 20_000, 70_001)


class HostArray:
    """An array in the host's memory, with the interface of one on the device."""

    def __init__(self, nbytes: int) -> None:
        self.memory = np.zeros(nbytes, np.uint8)

    def write(self, content: np.ndarray) -> None:
        """Write the content."""
        self.memory[:] = content

    def read(self) -> np.ndarray:
        """Return the content."""
        return self.memory


@dataclass
class Case:
    """One collective: its sizes, and where each rank's buffers lie."""

    seed: int
    kind: str
    form: str
    in_place: bool
    root: int
    sizes: list[int]
    places: list[int]
    sends: list[str]
    recvs: list[str]

    @property
    def total(self) -> int:
        """The bytes that the result spans, with gaps."""
        return max(map(sum, zip(self.places, self.sizes, strict=True)))

    def content(self, rank: int, step: int) -> np.ndarray:
        """Return what a rank sends in a step; for rank -1 what is there before."""
        draws = np.random.default_rng((self.seed, rank + 1, step))
        nbytes = self.total if rank < 0 else self.sizes[rank]
        return draws.integers(0, 256, nbytes, np.uint8)

    def before(self, rank: int, step: int) -> np.ndarray:
        """Return what a rank's result has before a step."""
        there = self.content(-1, step)
        if self.in_place:
            self._put(there, rank, step)
        return there

    def after(self, step: int) -> np.ndarray:
        """Return what every rank's result has after a step."""
        there = self.content(-1, step)
        for rank in range(len(self.sizes)):
            self._put(there, rank, step)
        return there

    def _put(self, there: np.ndarray, rank: int, step: int) -> None:
        begin = self.places[rank]
        there[begin : begin + self.sizes[rank]] = self.content(rank, step)


def draw(seed: int, nranks: int) -> Case:
    """Draw a case."""
    draws = random.Random(seed)
    kind = draws.choice(("Bcast", "Allgather", "Allgatherv"))
    root = draws.randrange(nranks)
    size = draws.choice(SIZES)
    sizes = [size] * nranks
    if kind == "Bcast":
        sizes = [size if rank == root else 0 for rank in range(nranks)]
    places = [0, *accumulate(sizes[:-1])]
    if kind == "Bcast":
        places = [0] * nranks
    if kind == "Allgatherv":
        sizes = [draws.choice(SIZES) for _ in range(nranks)]
        order, at = draws.sample(range(nranks), nranks), 0
        for rank in order:
            at += draws.choice((0, 0, 17))
            places[rank] = at
            at += sizes[rank]
    last = nranks - 1
    in_place = kind == "Bcast" or draws.random() < 1 / 3
    ends = [
        [draws.choice(WHERE) if rank < last else "host" for rank in range(nranks)]
        for _ in range(2)
    ]
    form = draws.choice(FORMS)
    return Case(seed, kind, form, in_place, root, sizes, places, *ends)


class Player:
    """Plays cases on one rank.

    Parameters
    ----------
    comm
        The communicator.
    driver
        The device's driver; None on a rank that has none.
    """

    def __init__(self, comm: mpimcast.Intracomm, driver: arrays.Driver | None) -> None:
        self._comm = comm
        self._rank = comm.Get_rank()
        self._driver = driver

    def play(self, case: Case) -> None:
        """Run a case, and check the result."""
        send = self._make(case.sends[self._rank], case.sizes[self._rank])
        recv = self._make(case.recvs[self._rank], case.total)
        arguments = self._arguments(case, send, recv)
        if case.form == "persistent":
            request = getattr(self._comm, f"{case.kind}_init")(*arguments)
        for step in range(2 if case.form == "persistent" else 1):
            send.write(case.content(self._rank, step))
            recv.write(case.before(self._rank, step))
            # Whoever overwrites the result too early changes what is read here.
            seen = None
            if isinstance(recv, arrays.Array):
                seen = recv.begin_to_read(recv.stream)
            if case.form == "blocking":
                getattr(self._comm, case.kind)(*arguments)
            elif case.form == "nonblocking":
                self._run_two(case, arguments)
            else:
                request.Start()
                request.Wait()
            content = recv.read()
            assert (content == case.after(step)).all(), f"step {step} of {case}"
            if seen is not None:
                self._driver.synchronize(recv.stream)
                before = case.before(self._rank, step)
                assert (seen == before).all(), f"overwritten too early: {case}"
        if case.form == "persistent":
            request.Free()

    def _run_two(self, case: Case, arguments: list[Any]) -> None:
        """Run the case and a Bcast of the host behind it."""
        word = np.full(1, case.seed if self._rank == 0 else -1)
        first = getattr(self._comm, f"I{case.kind.lower()}")(*arguments)
        second = self._comm.Ibcast(word)
        if case.seed % 2:
            second.Wait()
            first.Wait()
        else:
            MPI.Request.Waitall([first, second])
        assert word[0] == case.seed

    def _make(self, where: str, nbytes: int) -> Any:
        if where == "host":
            return HostArray(nbytes)
        kind = arrays.CudaArray if where == "CUDA array" else arrays.DlpackArray
        return kind(self._driver, nbytes)

    def _arguments(self, case: Case, send: Any, recv: Any) -> list[Any]:
        recvbuf, sendbuf = _buffer(recv), _buffer(send)
        if case.kind == "Bcast":
            return [recvbuf, case.root]
        if case.kind == "Allgatherv":
            recvbuf = [recvbuf, case.sizes, case.places, MPI.BYTE]
        if case.seed % 2:
            sendbuf = [sendbuf, case.sizes[self._rank], MPI.BYTE]
        return [MPI.IN_PLACE if case.in_place else sendbuf, recvbuf]


def _buffer(array: Any) -> Any:
    return array.memory if isinstance(array, HostArray) else array


def main(seed: int, ncases: int, *settings: str) -> None:
    """Run the cases from a seed on."""
    cutting.PIECE_BYTES = PIECE_BYTES
    world = MPI.COMM_WORLD
    rank, size = world.Get_rank(), world.Get_size()
    driver = arrays.open_driver() if rank < size - 1 else None
    chosen = dict(setting.split("=", 1) for setting in settings)
    comm = mpimcast.Intracomm(world.Dup(), min_bytes=0, **chosen)
    comm.Allgather(np.zeros(1), np.zeros(size))  # opens it
    player = Player(comm, driver)
    for number in range(ncases):
        player.play(draw(seed + number, size))
    comm.Free()
    print(f"rank {rank}: {ncases} cases are right")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:])
