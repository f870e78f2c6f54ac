# SPDX-License-Identifier: BSD-3-Clause
"""Partial completion: what a request offers to those who use data as it lands."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from mpimcast._support.pauses import pause_s

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    import numpy as np
    from numpy.typing import NDArray
    from typing_extensions import Self

    from mpimcast._support.landing import Landing

# Where no thread tells of blocks, a coroutine looks for them after pauses.
_PAUSE_S_MIN = 50e-6
_PAUSE_S_MAX = 1e-3


class Blocks:
    """The ranks whose blocks have landed, in that order, then those that land later.

    It can be iterated over by ``for``, which waits for the next block as ``Wait`` does,
    and in a coroutine by ``async for``, which lets other coroutines run meanwhile. Both
    raise `Error` if the operation fails. Each call of ``blocks`` returns an object that
    begins with the first block.

    Examples
    --------
    >>> block, blocks = np.full(3, comm.rank), np.zeros((comm.size, 3), int)
    >>> request = comm.Iallgather(block, blocks)
    >>> sums = {rank: int(blocks[rank].sum()) for rank in request.blocks()}
    >>> request.Wait()
    True
    >>> sums == {rank: 3 * rank for rank in range(comm.size)}
    True
    """

    def __init__(self, landing: Landing) -> None:
        self._landing = landing
        self._nseen = 0

    def __len__(self) -> int:
        """Return how many blocks the result has."""
        return len(self._landing.ranks)

    def __iter__(self) -> Iterator[int]:
        """Return this object."""
        return self

    def __next__(self) -> int:
        """Wait for the next block, and return its rank."""
        if self._nseen == len(self):
            raise StopIteration
        rank = self._landing.wait(self._nseen)
        self._nseen += 1
        return rank

    def __aiter__(self) -> AsyncIterator[int]:
        """Return this object."""
        return self

    async def __anext__(self) -> int:
        """Await the next block, and return its rank."""
        if self._nseen == len(self):
            raise StopAsyncIteration
        await_news = self._poll if self._landing.polls else self._listen
        rank = self._landing.look(self._nseen)
        if rank is None:
            rank = await await_news(self._nseen)
        self._nseen += 1
        return rank

    async def _poll(self, index: int) -> int:
        import asyncio

        waited_s, rank = 0.0, None
        while rank is None:
            next_s = pause_s(waited_s, _PAUSE_S_MIN, _PAUSE_S_MAX)
            await asyncio.sleep(next_s)
            waited_s += next_s
            self._landing.help_on()
            rank = self._landing.look(index)
        return rank

    async def _listen(self, index: int) -> int:
        import asyncio

        loop, news = asyncio.get_running_loop(), asyncio.Event()

        def wake() -> None:
            with contextlib.suppress(RuntimeError):  # the loop has been closed
                loop.call_soon_threadsafe(news.set)

        self._landing.listen(wake)
        try:
            while (rank := self._landing.look(index)) is None:
                await news.wait()
                news.clear()
        finally:
            self._landing.unlisten(wake)
        return rank


class Partial:
    """What requests offer of results that are still on their way.

    A block *lands* when all of it is in the receive buffer. What is reported of a block
    or a range is final: it may be read while the rest is on its way, but not written
    before the request is complete, since other ranks may still ask for it. A program
    must still complete the request by ``Wait``, ``Test`` or a function of MPI's.

    This rank's block lands when the operation begins here, after those of the same
    communicator before it. All blocks land together at the end, this rank's first,
    where the MPI library carries the operation, where two ranks of one node read each
    other's memory, and where the datatype of the receive buffer has gaps; where an
    adapter's firmware carries it, all others' do. On a device, and where a collective
    is cut into pieces, they land piece by piece.

    If the operation fails, each of these methods raises its error from then on. Of a
    request that is complete, they say that all is present; persistent requests tell of
    the operation started last, and raise ``MPI.Exception`` before the first.

    Examples
    --------
    >>> data = np.full(100, comm.rank)
    >>> request = comm.Ibcast(data, root=0)
    >>> request.wait_range(10, 5)
    >>> data[10:15].tolist()
    [0, 0, 0, 0, 0]
    >>> request.Wait()
    True
    >>> isinstance(request, mpimcast.Partial)
    True
    """

    def _landing(self) -> Landing:
        raise NotImplementedError

    def blocks(self) -> Blocks:
        """Return the ranks whose blocks have landed, and then those that do.

        Returns
        -------
        Blocks
            For ``for`` and for ``async for``. Of a Bcast it has the root alone.

        Raises
        ------
        Error
            From the iteration, if the operation failed.

        Examples
        --------
        >>> for rank in comm.Iallgather(block, blocks).blocks():
        ...     total = blocks[rank].sum()
        """
        return Blocks(self._landing())

    def wait_block(self, rank: int) -> None:
        """Wait until the block of a rank has landed.

        Parameters
        ----------
        rank
            A rank that has a block: any one or, for a Bcast, the root.

        Raises
        ------
        Error
            If the operation failed.
        ValueError
            If `rank` has no block.
        """
        self._landing().wait_block(rank)

    def test_range(self, first: int, count: int) -> bool:
        """Return at once whether a range of the result is present.

        Parameters
        ----------
        first, count
            Items of the receive buffer, counted from the beginning of the message, so
            that ``recvbuf[first : first + count]`` may be read. An item is an element
            of an array, or what a given datatype describes. Items of an Allgatherv
            that belong to no block count as present.

        Returns
        -------
        bool
            Whether all of them are present.

        Raises
        ------
        Error
            If the operation failed.
        ValueError
            If the result has no such items.
        """
        return self._landing().test_range(first, count)

    def wait_range(self, first: int, count: int) -> None:
        """Wait until a range of the result is present.

        Parameters
        ----------
        first, count
            As for `test_range`.

        Raises
        ------
        Error, ValueError
            As `test_range` does.
        """
        self._landing().wait_range(first, count)

    @property
    def present(self) -> NDArray[np.uint64]:
        """Which chunks of the result are present: words of 64 bits, lowest bit first.

        The array shows the memory of the C library, which changes until the operation
        has ended; it cannot be written, and may be kept for as long as one likes. It is
        a hint, for progress bars: NumPy's loads order nothing, so only what `blocks`,
        `wait_block`, `test_range` and `wait_range` say permits to read data. Chunks
        are what datagrams carry or, in shared memory, parts of pieces; each block
        begins a new one, in rank order. Where none are told of, because the operation
        has not begun, or was over when this was first asked for, or goes to the MPI
        library or a device, the whole result counts as one chunk, and the array is a
        copy.
        """
        return self._landing().chunks()[0]

    @property
    def chunks(self) -> int:
        """How many bits of `present` stand for chunks."""
        return self._landing().chunks()[1]

    def on_block(self, call: Callable[[int], object]) -> Self:
        """Have a function called with the rank of each block that has landed or lands.

        It is called in the order of landing, by the thread that completes requests,
        and must not call MPI, nor wait for a request. Where there is no such thread
        (``PROGRESS_THREAD=off``, or the MPI library carries the operation) it is called
        within ``Wait``, ``Test`` and like calls of this request's own. The request is
        complete only after the last call. If a call raises an exception, no further
        calls are made, and ``Wait`` and ``Test`` of this request raise it.

        Parameters
        ----------
        call
            The function. If all blocks have landed, it is called at once.

        Returns
        -------
        Self
            This request.
        """
        self._landing().on_block(call)
        return self
