# SPDX-License-Identifier: BSD-3-Clause
"""One rank that plays programs, on mpimcast or on the MPI library alone."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from mpi4py import MPI
from program import SHARES_MAX, Op, Program, Step, order
from typing_extensions import Self

import mpimcast
from mpimcast import HostedPrequest

STRIDE = 3  # from item to item in buffers with gaps
POISON = -1

# For each name, the colour and the key with which a rank splits the world.
GROUPS: dict[str, Callable[[MPI.Intracomm], tuple[int, int]]] = {
    "all": lambda world: (0, world.rank),
    "backwards": lambda world: (0, -world.rank),
    "odd or even": lambda world: (world.rank % 2, world.rank),
}


class Part:
    """A rank's part in an operation: its buffers, and the outcome of each start.

    Parameters
    ----------
    number, op
        The operation's number in the program, and the operation.
    comm
        The operation's communicator.
    spread
        The type of items with gaps.
    """

    def __init__(
        self, number: int, op: Op, comm: MPI.Intracomm, spread: MPI.Datatype
    ) -> None:
        self.op = op
        self.comm = comm
        self.outcomes: list[bytes] = []
        self.request: MPI.Request | None = None
        self._also: list[MPI.Request] = []
        self._number = number
        self._turn = 0
        rank, size = comm.Get_rank(), comm.Get_size()
        self._root = op.root % size
        counts = [op.count] * (1 if op.what == "Bcast" else size)
        begins = list(itertools.accumulate(counts, initial=0))
        if op.what == "Allgatherv":
            shares = [op.shares[each % len(op.shares)] for each in range(size)]
            counts = [op.count * share // SHARES_MAX for share in shares]
            begins = list(itertools.accumulate(counts, initial=0))
            begins = [begin + 2 * each + 1 for each, begin in enumerate(begins)]
        self._own = slice(begins[rank % len(counts)], None)
        self.mine = np.zeros(counts[rank % len(counts)], np.int32)
        strided = op.strided >> rank & 1
        self._step = STRIDE if strided else 1
        self.place = np.zeros(begins[-1] * self._step, np.int32)
        kind = spread if strided else MPI.INT32_T
        if op.what == "Allgatherv":
            self._spec: Any = [self.place, counts, begins[:-1], kind]
        else:
            self._spec = [self.place, op.count, kind]

    # ---- data ----------------------------------------------------------------

    def fill(self) -> None:
        """Fill this rank's block with new data, and erase the received data."""
        op, rank = self.op, self.comm.Get_rank()
        salt = 1000 * self._number + 100 * self._turn + rank
        self.mine[:] = np.arange(len(self.mine)) % 1009 + 10_000 * salt
        self.place.fill(POISON)
        roots = op.what == "Bcast" and rank == self._root
        if roots or (op.in_place and op.what.startswith("Allgather")):
            places = self.place[:: self._step]
            begin = 0 if op.what == "Bcast" else self._own.start
            places[begin : begin + len(self.mine)] = self.mine
        self._turn += 1

    def _arguments(self) -> tuple[Any, ...]:
        """Return the arguments of mpi4py's method."""
        if self.op.what == "Bcast":
            return self._spec, self._root
        if self.op.what == "Allreduce":
            return self.mine, self.place[: len(self.mine)]
        return MPI.IN_PLACE if self.op.in_place else self.mine, self._spec

    def _take(self) -> None:
        """Record the received bytes as an outcome."""
        self.outcomes.append(self.place.tobytes())

    # ---- steps ---------------------------------------------------------------

    def call(self) -> None:
        """Perform the operation, return when it is done, and record its outcome."""
        self.fill()
        what, comm = self.op.what, self.comm
        if what == "message":
            after, before = self._neighbours()
            got = self.place[: len(self.mine)]
            comm.Sendrecv(self.mine, after, self._number, got, before, self._number)
        elif what == "bcast":
            given = self._object() if comm.Get_rank() == self._root else None
            self._say(comm.bcast(given, self._root))
            return
        elif what == "allgather":
            self._say(comm.allgather(self._object()))
            return
        else:
            getattr(comm, what)(*self._arguments())
        self._take()

    def _object(self) -> Any:
        return {"all": self.mine, "some": [bytes(self.mine[:9]), None, self._turn]}

    def _say(self, came: Any) -> None:
        self.outcomes.append(repr([came, np.shape(came)]).encode())
        pieces = came if isinstance(came, list) else [came]
        self.outcomes.extend(piece["all"].tobytes() for piece in pieces)

    def _neighbours(self) -> tuple[int, int]:
        rank, size = self.comm.Get_rank(), self.comm.Get_size()
        return (rank + 1) % size, (rank - 1) % size

    def init(self) -> None:
        """Make a persistent request."""
        self.request = getattr(self.comm, f"{self.op.what}_init")(*self._arguments())

    def start(self) -> None:
        """Start the operation without waiting."""
        self.fill()
        if self.op.what == "message":
            after, before = self._neighbours()
            got = self.place[: len(self.mine)]
            self._also = [self.comm.Isend(self.mine, after, self._number)]
            self.request = self.comm.Irecv(got, before, self._number)
        else:
            self.request = getattr(self.comm, f"I{self.op.what.lower()}")(
                *self._arguments()
            )

    def completed(self) -> None:
        """Record the outcome of a completed request."""
        MPI.Request.Waitall(self._also)
        assert self.request == MPI.REQUEST_NULL or self.op.form == "persistent"
        self._take()

    def free(self) -> None:
        """Free a persistent request."""
        assert self.request is not None
        self.request.Free()


# ---- completion ----------------------------------------------------------------


def _one_by_one(requests: list[MPI.Request]) -> None:
    for request in requests:
        request.Wait()


def _waitany(requests: list[MPI.Request]) -> None:
    for _ in requests:
        assert MPI.Request.Waitany(requests) != MPI.UNDEFINED


def _waitsome(requests: list[MPI.Request]) -> None:
    left = len(requests)
    while left:
        left -= len(MPI.Request.Waitsome(requests) or ())


def _testsome(requests: list[MPI.Request]) -> None:
    left = len(requests)
    while left:
        left -= len(MPI.Request.Testsome(requests) or ())


def _testall(requests: list[MPI.Request]) -> None:
    # MPICH's Testall raises, or crashes, on MPICH's own persistent requests.
    if any(isinstance(request, HostedPrequest) for request in requests):
        MPI.Request.Waitall(requests)
        return
    while not MPI.Request.Testall(requests):
        pass


def _tests(requests: list[MPI.Request]) -> None:
    for request in requests:
        while not request.Test():
            pass


WAYS: list[Callable[[list[MPI.Request]], object]] = [
    _one_by_one,
    _waitany,
    _testsome,
    _testall,
    _tests,
    MPI.Request.Waitall,
    _waitsome,
]


class Player:
    """One rank, with the communicators that programs begin from.

    Parameters
    ----------
    settings
        Settings of communicators, as programs number them.

    Attributes
    ----------
    totals : dict
        Sums of the counters of all communicators that programs used.
    nmoved : int
        Number of steps done at a different place than in the common order.
    nproxied : int
        Number of operations that a proxy has run for this rank.
    """

    def __init__(self, settings: Sequence[dict[str, Any]]) -> None:
        self.totals: dict[str, int] = {}
        self.nmoved = 0
        self.nproxied = 0
        self._settings = settings
        world = MPI.COMM_WORLD
        self._plain = {name: world.Split(*f(world)) for name, f in GROUPS.items()}
        self._used: dict[tuple[int, str], mpimcast.Intracomm] = {}
        self._spread = MPI.INT32_T.Create_resized(0, 4 * STRIDE).Commit()

    def __enter__(self) -> Self:
        """Return the player itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Free the communicators and the type."""
        for comm in self._used.values():
            comm.Free()
        self._spread.Free()

    def expect(self, program: Program) -> list[list[bytes]]:
        """Play a program on the MPI library, in the common order."""
        comms = [self._plain[comm.ranks] for comm in program.comms]
        return self._play(program, comms, program.steps)

    def play(self, program: Program) -> list[list[bytes]]:
        """Play a program on mpimcast, in this rank's own order."""
        comms = [self._open(*comm) for comm in program.comms]
        world_rank = MPI.COMM_WORLD.Get_rank()
        steps = order(program, world_rank)
        self.nmoved += sum(map(tuple.__ne__, steps, program.steps))
        rng = random.Random(f"{program.salt} {world_rank}")
        outcomes = self._play(program, comms, steps, rng)
        for (settings, *_), comm in zip(program.comms, comms, strict=True):
            stats = comm.stats()
            if self._settings[settings].get("progress") == "proxy":
                self.nproxied += stats["epochs"]
            for name, value in stats.items():
                self.totals[name] = self.totals.get(name, 0) + value
            comm.Free()
        return outcomes

    def _open(self, settings: int, ranks: str, derived: bool) -> mpimcast.Intracomm:
        """Return a new communicator; another one keeps its team open."""
        chosen, plain = self._settings[settings], self._plain[ranks]
        if (settings, ranks) not in self._used:
            used = mpimcast.Intracomm(plain.Dup(), **chosen)
            used.Allgather(np.zeros(1000), np.zeros(1000 * used.size))
            self._used[settings, ranks] = used
        if derived:
            return self._used[settings, ranks].Dup()
        return mpimcast.Intracomm(plain.Dup(), **chosen)

    def _play(
        self,
        program: Program,
        comms: Sequence[MPI.Intracomm],
        steps: Sequence[Step],
        rng: random.Random | None = None,
    ) -> list[list[bytes]]:
        parts = [
            Part(number, op, comms[op.comm], self._spread)
            for number, op in enumerate(program.ops)
        ]

        def together(step: Step) -> tuple[str, bool]:
            return step.kind, program.ops[step.op].form == "persistent"

        for (kind, persistent), group in itertools.groupby(steps, together):
            some = [parts[step.op] for step in group]
            requests: list[Any] = [part.request for part in some]
            if kind == "wait":
                (rng.choice(WAYS) if rng else _one_by_one)(requests)
                for part in some:
                    part.completed()
            elif kind == "start" and persistent:
                for part in some:
                    part.fill()
                mpimcast.Startall(requests)
            else:
                for part in some:
                    getattr(part, kind)()
        return [part.outcomes for part in parts]
