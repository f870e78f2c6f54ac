# SPDX-License-Identifier: BSD-3-Clause
"""Partial completion where proxies carry out the operations of all ranks, or of some.

Where a test says that something lands before the end, the operation cannot end, since
some of its chunks are always lost.
"""

from __future__ import annotations

import contextlib
import signal

import numpy as np
import pytest
from gathering import LOSSY, Gathering, gather_and_check, require_two_ranks
from mpi4py import MPI
from parts import (
    TAKERS,
    Result,
    check_blocks,
    check_many,
    check_present,
    check_restarts,
)
from processes import Process
from proxied import LIMIT_S, WHO, Make, Proxies

from mpimcast import Error, Intracomm
from mpimcast._native.proxy import find

pytestmark = pytest.mark.network

# How long operations take to fail that cannot end.
SOON = {"timeout": 1, "late_timeout": 1}


def opened(comm: Intracomm) -> Intracomm:
    """Open the transport, by messages that no fault of these tests concerns."""
    comm.Allgather(np.zeros(1), np.zeros(comm.size))
    return comm


def silence(comm: MPI.Intracomm) -> str:
    """Return the setting with which no block of the last rank arrives."""
    return f"loss=1,rank={comm.size - 1},dir=tx"


@pytest.mark.parametrize("how", TAKERS)
@pytest.mark.parametrize("fault", ["", LOSSY])
@pytest.mark.parametrize("who", WHO)
def test_blocks(make_proxied: Make, who: str, fault: str, how: str, seed: int) -> None:
    """Each block is in its place when it is announced, and is announced once."""
    settings = {"fault": f"{fault},seed={seed}"} if fault else {}
    check_blocks(opened(make_proxied(who, **settings)), how)


@pytest.mark.parametrize("fault", ["", LOSSY])
@pytest.mark.parametrize("who", WHO)
def test_ranges(make_proxied: Make, who: str, fault: str, seed: int) -> None:
    """Ranges hold the right data as soon as they are said to be present."""
    settings = {"fault": f"{fault},seed={seed}"} if fault else {}
    comm = opened(make_proxied(who, **settings))
    random = np.random.default_rng((seed, comm.rank))
    for salt in range(8):
        result = Result(comm, ("Ibcast", "Iallgather")[salt % 2], 20_000, salt)
        request, whole = result.start(comm), result.expected()
        while not request.test_range(0, len(whole)):
            first = int(random.integers(len(whole)))
            count = int(random.integers(min(len(whole) - first, 1000) + 1))
            if request.test_range(first, count):
                got = result.place[first : first + count]
                assert np.array_equal(got, whole[first : first + count])
        request.Wait()


class Recorded(Result):
    """A result that records which of its blocks were checked."""

    def __init__(self, comm: MPI.Intracomm, name: str, count: int, salt: int) -> None:
        super().__init__(comm, name, count, salt)
        self.checked: list[int] = []

    def check(self, rank: int) -> None:
        """Assert that a rank's block is in its place, and record that."""
        super().check(rank)
        self.checked.append(rank)


def take_until_failure(how: str, request: MPI.Request, result: Recorded) -> list[int]:
    """Take blocks in some way, and check each, until the request fails."""
    with pytest.raises(Error):
        TAKERS[how](request, result)
    order = list(result.checked)
    with pytest.raises(Error):
        list(request.blocks())
    if how != "on_block":  # which has waited
        with pytest.raises(Error):
            request.Wait()
    for rank in order:  # what was announced stays
        result.check(rank)
    return order


@pytest.mark.parametrize("how", TAKERS)
@pytest.mark.parametrize("name", ["Iallgather", "Iallgatherv"])
@pytest.mark.parametrize("who", WHO)
def test_blocks_land_before_the_end(
    make_proxied: Make, mpi_comm: MPI.Intracomm, who: str, name: str, how: str
) -> None:
    """All blocks land of an operation that then fails, but the one that is lost."""
    comm = opened(make_proxied(who, fault=silence(mpi_comm), **SOON))
    require_two_ranks(comm)
    comm.Set_errhandler(MPI.ERRORS_RETURN)
    last = comm.size - 1
    salt = next(salt for salt in range(3) if (last + salt) % 3 > 0)
    result = Recorded(comm, name, 20_000, salt)
    request = result.start(comm)
    if comm.rank == last:  # it lacks nothing, and may not learn of the failure
        with contextlib.suppress(Error):
            request.Wait()
        return
    if name == "Iallgather":
        request.wait_range(0, 20_000 * last)
        assert not request.test_range(20_000 * last, 1)
    order = take_until_failure(how, request, result)
    assert sorted(order) == list(range(last))


@pytest.mark.parametrize("who", WHO)
def test_ranges_land_before_the_end(
    make_proxied: Make, mpi_comm: MPI.Intracomm, who: str, seed: int
) -> None:
    """Chunks are present of a message that loses others, and all repairs."""
    others = "+".join(map(str, range(1, mpi_comm.size)))
    fault = f"rank={others},loss=0.5,seed={seed},kind=multicast"
    fault += f";rank={others},loss=1,kind=repair"
    comm = opened(make_proxied(who, fault=fault if others else "", **SOON))
    require_two_ranks(comm)
    comm.Set_errhandler(MPI.ERRORS_RETURN)
    result = Result(comm, "Ibcast", 100_000, 0)
    request, whole = result.start(comm), result.expected()
    if comm.rank == 0:  # it lacks nothing, and may not learn of the failure
        with contextlib.suppress(Error):
            request.Wait()
        return
    chunks = [slice(first, first + 128) for first in range(0, 99_968, 128)]
    found = 0
    while found == 0:
        for each in chunks:
            if request.test_range(each.start, 128):
                assert np.array_equal(result.place[each], whole[each])
                found += 1
    assert not request.test_range(0, len(whole))
    with pytest.raises(Error):
        request.Wait()


@pytest.mark.parametrize("who", WHO)
def test_persistent(make_proxied: Make, who: str, seed: int) -> None:
    """A persistent request tells of the operation that was started last."""
    comm = opened(make_proxied(who, fault=f"{LOSSY},seed={seed}"))
    require_two_ranks(comm)
    each = Gathering(comm, 3000)
    request = comm.Allgather_init(each.block, each.place)
    check_restarts(request, each)
    request.Free()


@pytest.mark.parametrize("who", WHO)
def test_many_requests(make_proxied: Make, who: str) -> None:
    """Blocks of operations that have not begun yet can be awaited, in any order."""
    check_many(opened(make_proxied(who)))


@pytest.mark.parametrize("who", WHO)
def test_present(make_proxied: Make, mpi_comm: MPI.Intracomm, who: str) -> None:
    """The bits only grow, cover blocks that have landed, and are all set at last."""
    comm = opened(make_proxied(who))
    require_two_ranks(comm)
    check_present(comm, mpi_comm)


@pytest.mark.parametrize("who", WHO)
def test_a_proxy_that_is_killed(
    make_proxied: Make, proxies: Proxies, mpi_comm: MPI.Intracomm, who: str
) -> None:
    """What has landed stays, and the request fails."""
    name = proxies.new_name()
    fault, limits = silence(mpi_comm), {"timeout": 3, "late_timeout": 3}
    comm = opened(make_proxied(who, proxy=name, fault=fault, **limits))
    require_two_ranks(comm)
    comm.Set_errhandler(MPI.ERRORS_RETURN)
    last = comm.size - 1
    result = Result(comm, "Iallgather", 20_000, 0)
    request = result.start(comm)
    blocks = request.blocks()
    order = []
    while comm.rank < last and len(order) < last:
        order.append(next(blocks))
        result.check(order[-1])
    runner = find(name)
    assert runner is not None
    with Process(runner.pid) as process:
        mpi_comm.Barrier()
        if comm.rank == 0:
            process.send(signal.SIGKILL)
        assert process.has_ended(LIMIT_S)
    if comm.rank < last:
        with pytest.raises(Error):
            next(blocks)
        with pytest.raises(Error):
            request.Wait()
        assert sorted(order) == list(range(last))
        for rank in order:
            result.check(rank)
    else:  # it lacks nothing, and may have ended before
        with contextlib.suppress(Error):
            request.Wait()
    with pytest.raises(Error):
        gather_and_check(comm)
