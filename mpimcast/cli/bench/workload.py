# SPDX-License-Identifier: BSD-3-Clause
"""The workloads of benchmarks: a collective, its buffers, and their expected bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from mpi4py import MPI

from mpimcast.memory import empty

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from mpimcast.comm import Intracomm

_SEED = 20241117
_SPAN = 1 << 16


class Pattern:
    """The bytes that ranks contribute.

    At every place they change from one operation to the next, so that a byte which the
    previous operation left cannot be taken for a correct one.
    """

    def __init__(self, nbytes: int) -> None:
        random = np.random.Generator(np.random.PCG64(_SEED))
        self._base = random.integers(0, 256, nbytes + _SPAN, np.uint8)
        self._scratch = np.empty(nbytes, np.uint8)

    def write(self, rank: int, number: int, block: NDArray[np.uint8]) -> None:
        """Write the block of `rank` in operation `number`."""
        begin = rank * 40503 % _SPAN  # far apart, at odd distances
        base = self._base[begin : begin + block.size]
        np.add(base, np.uint8(number % 256), out=block)

    def wrong_bytes(self, rank: int, number: int, block: NDArray[np.uint8]) -> int:
        """Return how many bytes are not those of `rank` in operation `number`."""
        scratch = self._scratch[: block.size]
        self.write(rank, number, scratch)
        return int(np.count_nonzero(scratch != block))


class Workload:
    """One collective, to be run repeatedly.

    Attributes
    ----------
    total_bytes : int
        The size of the result.
    unicast_bytes : float
        The fewest bytes that ranks send, on average, if each datagram has one receiver.
    root_unicast_bytes : float or None
        The bytes that the root sends by unicast in a chain; None without a fixed root.
    bus_part : float
        The part of `total_bytes` that every rank's link has to carry.
    """

    total_bytes: int
    unicast_bytes: float
    root_unicast_bytes: float | None = None
    bus_part: float

    def __init__(self, name: str) -> None:
        self._name = name
        self._await_readers: Callable[[], None] = lambda: None

    def await_readers_by(self, barrier: Callable[[], None]) -> None:
        """Have `fill` call this barrier first."""
        self._await_readers = barrier

    def turn_to(self, number: int, turn: int) -> None:
        """Make operation `number` the next; `turn` chooses a root that is not fixed."""
        raise NotImplementedError

    def fill(self) -> None:
        """Write this rank's contribution.

        If ranks share the result, first wait until all of them have read the last one.
        """
        self._await_readers()
        self._write()

    def _write(self) -> None:
        raise NotImplementedError

    def arguments(self) -> tuple[Any, ...]:
        """Return the arguments of the communicator's method."""
        raise NotImplementedError

    def wrong_bytes(self) -> int:
        """Return how many bytes of the result are wrong."""
        raise NotImplementedError

    def run(self, comm: MPI.Intracomm) -> None:
        """Run the blocking operation."""
        getattr(comm, self._name)(*self.arguments())

    def start(self, comm: MPI.Intracomm) -> MPI.Request:
        """Start the non-blocking operation."""
        request: MPI.Request = getattr(comm, f"I{self._name.lower()}")(
            *self.arguments()
        )
        return request


class _Gather(Workload):
    """Sends every rank's block to all ranks; blocks begin and end at `bounds`."""

    def __init__(
        self,
        name: str,
        rank: int,
        bounds: NDArray[np.int64],
        place: NDArray[np.uint8],
        *,
        in_place: bool,
    ) -> None:
        super().__init__(name)
        nbytes = np.diff(bounds)
        self._blocks = np.split(place, bounds[1:-1])
        own = self._blocks[rank]
        self._own = own if in_place else np.empty_like(own)
        send = MPI.IN_PLACE if in_place else self._own
        recv: Any = [place, (nbytes.tolist(), bounds[:-1].tolist()), MPI.BYTE]
        if name == "Allgather":
            recv = place.reshape(len(nbytes), -1)
        self._arguments = (send, recv)
        self._rank, self._number = rank, 0
        self._pattern = Pattern(int(nbytes.max()))
        for each, block in enumerate(self._blocks):
            self._pattern.write(each, -1, block)
        self.fill()
        self.total_bytes = place.nbytes
        self.unicast_bytes = place.nbytes * (len(nbytes) - 1) / len(nbytes)
        self.bus_part = (len(nbytes) - 1) / len(nbytes)

    def turn_to(self, number: int, turn: int) -> None:  # noqa: ARG002 -- no root
        self._number = number

    def _write(self) -> None:
        self._pattern.write(self._rank, self._number, self._own)

    def arguments(self) -> tuple[Any, ...]:
        return self._arguments

    def wrong_bytes(self) -> int:
        return sum(
            self._pattern.wrong_bytes(rank, self._number, block)
            for rank, block in enumerate(self._blocks)
        )


class _Bcast(Workload):
    """Sends the root's block to all ranks."""

    def __init__(
        self, rank: int, size: int, place: NDArray[np.uint8], root: int | None
    ) -> None:
        nbytes = place.size
        super().__init__("Bcast")
        self._rank, self._size, self._fixed_root = rank, size, root
        self._pattern = Pattern(nbytes)
        self._place = place
        self._pattern.write(0, -1, self._place)
        self.turn_to(0, 0)
        self.fill()
        self.total_bytes = nbytes
        self.unicast_bytes = nbytes * (size - 1) / size
        if root is not None:
            self.root_unicast_bytes = float(nbytes if size > 1 else 0)
        self.bus_part = 1.0

    def turn_to(self, number: int, turn: int) -> None:
        self._number = number
        fixed = self._fixed_root
        self._root = turn % self._size if fixed is None else fixed

    def _write(self) -> None:
        if self._rank == self._root:
            self._pattern.write(0, self._number, self._place)

    def arguments(self) -> tuple[Any, ...]:
        return self._place, self._root

    def wrong_bytes(self) -> int:
        return self._pattern.wrong_bytes(0, self._number, self._place)


def workload(
    name: str,
    comm: MPI.Intracomm,
    nbytes: int,
    *,
    in_place: bool = False,
    sharing: Intracomm | None = None,
    root: int | None = 0,
) -> Workload:
    """Return the workload of a blocking collective. Collective over `sharing`.

    Parameters
    ----------
    name
        ``"Allgather"``, ``"Allgatherv"`` or ``"Bcast"``.
    comm
        A communicator of the ranks.
    nbytes
        Bytes of each rank's block; for an Allgatherv, whose blocks grow as
        1 : 2 : ... : P, the mean of the blocks; for a Bcast, the root's data.
    in_place
        Whether each rank's own block lies in its place already.
    sharing
        The communicator by which the ranks of a node share the memory of the result, or
        None if each rank has its own.
    root
        The root of a Bcast; None: each rank in turn.
    """

    def memory(nbytes: int) -> NDArray[np.uint8]:
        if sharing is not None:
            return empty(nbytes, np.uint8, comm=sharing)
        return np.empty(nbytes, np.uint8)

    rank, size = comm.rank, comm.size
    if name == "Bcast":
        work: Workload = _Bcast(rank, size, memory(nbytes), root)
    else:
        ends = np.arange(size + 1, dtype=np.int64)
        bounds = ends * nbytes
        if name == "Allgatherv":
            bounds = size * nbytes * ends * (ends + 1) // (size * (size + 1))
        place = memory(int(bounds[-1]))
        work = _Gather(name, rank, bounds, place, in_place=in_place)
    if sharing is not None:
        work.await_readers_by(sharing.node_barrier)
    return work
