# SPDX-License-Identifier: BSD-3-Clause
"""Partial completion: data is read at the moment at which it is announced."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import threading

import numpy as np
import pytest
from gathering import LOSSY, Gathering, Make, require_two_ranks
from mpi4py import MPI
from parts import (
    TAKERS,
    Mishap,
    Result,
    check_blocks,
    check_many,
    check_present,
    check_restarts,
    results,
    take,
    take_async,
)

from mpimcast import Error


@pytest.mark.parametrize("how", TAKERS)
@pytest.mark.parametrize("fault", ["", LOSSY])
def test_blocks(make_opened: Make, how: str, fault: str, seed: int) -> None:
    """Each block is in its place when it is announced, and is announced once."""
    settings = {"fault": f"{fault},seed={seed}"} if fault else {}
    check_blocks(make_opened(**settings), how)


@pytest.mark.parametrize("fault", ["", LOSSY])
def test_ranges_while_others_wait(make_opened: Make, fault: str, seed: int) -> None:
    """Ranges that are present hold the right data, while another thread waits."""
    settings = {"fault": f"{fault},seed={seed}"} if fault else {}
    comm = make_opened(**settings)
    random = np.random.default_rng((seed, comm.rank))
    for result in results(comm):
        request, whole = result.start(comm), result.expected()
        waiter = threading.Thread(target=take, args=(request, result))
        waiter.start()
        ntried = 0
        while waiter.is_alive() or ntried == 0:
            ntried += 1
            first = int(random.integers(len(whole) + 1))
            count = int(random.integers(len(whole) - first + 1))
            if not _lies_in_blocks(result, first, count):
                continue
            if request.test_range(first, count):
                got = result.place[first : first + count]
                assert np.array_equal(got, whole[first : first + count])
            request.wait_range(first, count // 7)
        waiter.join()
        request.Wait()
        assert np.array_equal(result.place, whole)


def _lies_in_blocks(result: Result, first: int, count: int) -> bool:
    """Return whether a result has these items, in blocks or between them."""
    ends = (
        result.begins[rank] + len(block)
        for rank, block in result.blocks.items()
        if len(block)
    )
    return first + count <= max(ends, default=0)


def test_each_block_can_be_awaited(make_opened: Make) -> None:
    """Blocks may be awaited in any order; ranks without one are refused."""
    comm = make_opened()
    for result in results(comm):
        request = result.start(comm)
        for rank in reversed(result.ranks):
            request.wait_block(rank)
            result.check(rank)
        for wrong in (-1, comm.size):
            with pytest.raises(ValueError, match=f"rank {wrong} has no block"):
                request.wait_block(wrong)
        request.Wait()


def test_ranges_are_counted_in_items(make_opened: Make) -> None:
    """They begin at the beginning of the message; what it has not is refused."""
    comm = make_opened()
    size = comm.size
    place = np.zeros(5 + 4 * size)
    request = comm.Iallgather(np.ones(4), [place, 4, 5, MPI.DOUBLE])
    request.wait_range(0, 4 * size)
    assert place[5:].all()
    for wrong in ((-1, 1), (0, -1), (0, 4 * size + 1), (4 * size, 1)):
        with pytest.raises(ValueError, match="items"):
            request.test_range(*wrong)
    assert request.test_range(4 * size, 0)
    request.Wait()
    # Without a datatype, an array's elements are the items.
    request = comm.Ibcast(np.zeros(7, np.int16))
    request.Wait()
    assert request.test_range(6, 1)
    with pytest.raises(ValueError, match="has 7"):
        request.test_range(7, 1)


def test_persistent(make_opened: Make) -> None:
    """A persistent request tells of the operation that was started last."""
    comm = make_opened()
    require_two_ranks(comm)
    each = Gathering(comm, 3000)
    request = comm.Allgather_init(each.block, each.place)
    with pytest.raises(MPI.Exception):
        request.blocks()
    check_restarts(request, each)
    request.Free()
    with pytest.raises(MPI.Exception):
        request.blocks()


def test_many_requests(make_opened: Make) -> None:
    """Blocks of operations that have not begun yet can be awaited, in any order."""
    comm = make_opened()
    check_many(comm)
    made = [Result(comm, "Iallgather", 500, salt) for salt in range(12)]

    async def take_all() -> None:
        requests = [each.start(comm) for each in made]
        both = zip(requests, made, strict=True)
        await asyncio.gather(*(take_async(*each) for each in both))
        MPI.Request.Waitall(requests)

    asyncio.run(take_all())


def test_coroutines_run_meanwhile(make_opened: Make, mpi_comm: MPI.Intracomm) -> None:
    """While a coroutine awaits the block of a late rank, others run."""
    comm = make_opened()
    require_two_ranks(comm)
    each = Gathering(comm, 3000)

    async def let_go() -> None:
        # Only now does rank 0 start.
        await asyncio.to_thread(mpi_comm.Barrier)

    async def gather() -> None:
        blocks = each.start().blocks()
        assert await anext(blocks) == comm.rank
        other = asyncio.create_task(let_go())
        async for rank in blocks:
            assert each.place[rank, -1] == 2999 + 1000 * rank
        await other

    if comm.rank == 0:
        mpi_comm.Barrier()
        for _ in each.start().blocks():
            pass
    else:
        asyncio.run(gather())
    each.check()


# ---- the bits of chunks ------------------------------------------------------------


@pytest.mark.network
def test_present(make_opened: Make, mpi_comm: MPI.Intracomm) -> None:
    """The bits only grow, cover blocks that have landed, and are all set at last."""
    comm = make_opened()
    require_two_ranks(comm)
    check_present(comm, mpi_comm)


def test_present_outlives_everything(make_comm: Make) -> None:
    """The array may be kept when request and communicator are gone."""
    comm = make_comm()
    comm.Allgather(np.zeros(1), np.zeros(comm.size))
    requests = [Result(comm, "Iallgather", 20_000, salt) for salt in range(3)]
    arrays = []
    for result in requests:
        request = result.start(comm)
        arrays.append(request.present)
        assert not arrays[-1].flags.writeable
        request.Wait()
        last, nchunks = request.present, request.chunks
        del request
    for result in requests:
        result.start(comm).Wait()
    comm.Free()
    gc.collect()
    bits = np.unpackbits(last.view(np.uint8), count=nchunks, bitorder="little")
    assert bits.all()
    for array in arrays:
        assert array.dtype == np.uint64
        assert array.sum() >= 0


# ---- callbacks ---------------------------------------------------------------------


@pytest.mark.parametrize("way", ["Wait", "Test", "Waitall"])
def test_exceptions_of_callbacks(make_opened: Make, way: str) -> None:
    """They surface where the request is waited for, and end the calls."""
    comm = make_opened()
    require_two_ranks(comm)
    each = Gathering(comm, 3000)
    called = []

    def fail(rank: int) -> None:
        called.append(rank)
        raise Mishap(rank)

    request = each.start().on_block(fail)

    def test() -> None:
        while not request.Test():
            pass

    wait = {"Wait": request.Wait, "Test": test}.get(
        way, lambda: MPI.Request.Waitall([request])
    )
    with pytest.raises(MPI.Exception if way == "Waitall" else Mishap):
        wait()
    assert called == [comm.rank]
    each.check()
    # Neither the communicator nor later operations have suffered.
    each.start().Wait()


def test_callbacks_run_in_the_completer(
    make_opened: Make, mpi_comm: MPI.Intracomm
) -> None:
    """They run in another thread, before any wait returns, as often as registered."""
    comm = make_opened()
    require_two_ranks(comm)
    mine = threading.current_thread()
    for salt in range(20):
        each = Gathering(comm, 3000, salt)
        # When the other ranks register callbacks, rank 0 has not started.
        if comm.rank == 0:
            mpi_comm.Barrier()
        request = each.start()
        first: list[int] = []
        second: list[int] = []
        threads: list[threading.Thread] = []

        def note(rank: int, first: list[int] = first, each: Gathering = each) -> None:
            assert each.place[rank, -1] == 2999 + 1000 * rank + 7 * each.salt
            first.append(rank)

        def note_thread(
            rank: int,
            second: list[int] = second,
            seen: list[threading.Thread] = threads,
        ) -> None:
            seen.append(threading.current_thread())
            second.append(rank)

        request.on_block(note).on_block(note_thread)
        if comm.rank != 0:
            mpi_comm.Barrier()
        MPI.Request.Waitall([request])
        assert sorted(first) == list(range(comm.size))
        assert first == second == list(request.blocks())
        late: list[int] = []
        request.on_block(late.append)
        assert late == first
        assert comm.rank == 0 or mine not in threads


# ---- failures ----------------------------------------------------------------------


def test_failures(make_opened: Make) -> None:
    """After a failure each way of asking raises the operation's error."""
    comm = make_opened()
    require_two_ranks(comm)
    comm.Set_errhandler(MPI.ERRORS_RETURN)
    # The last rank starts another operation than all others.
    request = Gathering(comm, 3000 + (comm.rank == comm.size - 1)).start()
    called: list[int] = []
    with contextlib.suppress(Error):  # it may have failed already
        request.on_block(called.append)
    for ask in (
        lambda: list(request.blocks()),
        lambda: asyncio.run(_take_all(request)),
        lambda: request.wait_block(comm.size - 1 - comm.rank),
        lambda: request.wait_range(0, 3000 * comm.size),
        lambda: request.test_range(0, 1),
        lambda: request.wait_block(comm.rank),
        request.Wait,
        lambda: list(request.blocks()),
    ):
        with pytest.raises(Error, match="disagree"):
            ask()
    # Blocks of ranks that agree with this one may have landed before.
    agreeing = range(comm.size - 1)
    assert set(called) <= (
        {comm.rank} | {*agreeing} if comm.rank in agreeing else {comm.rank}
    )


async def _take_all(request: MPI.Request) -> None:
    async for _ in request.blocks():
        pass
