# SPDX-License-Identifier: BSD-3-Clause
"""One rank that calls torch's collectives by the backend "mpimcast".

It fails unless they do what torch says of them, and DistributedDataParallel and FSDP1
train as one process does.
"""

from __future__ import annotations

import faulthandler
import itertools

import cases
import pytest
import torch
import torch.distributed as dist
from cases import CASES
from mpi4py import MPI
from torch.distributed.fsdp import FullyShardedDataParallel
from torch.nn.parallel import DistributedDataParallel

import mpimcast.torch
from mpimcast.torch.pool import Pool

DTYPES = (torch.float32, torch.bfloat16, torch.int64, torch.bool, torch.complex64)
OPS = {
    dist.ReduceOp.SUM: lambda whole: whole.sum(0),
    dist.ReduceOp.AVG: lambda whole: whole.mean(0),
    dist.ReduceOp.MIN: lambda whole: whole.amin(0),
    dist.ReduceOp.MAX: lambda whole: whole.amax(0),
    dist.ReduceOp.PRODUCT: lambda whole: whole.prod(0),
}


def block(rank: int, nitems: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Return what a rank contributes: small whole numbers, exact in every type."""
    return ((torch.arange(nitems) + 3 * rank) % 5).to(dtype)


def gathers(rank: int, nranks: int) -> None:
    """Gather and broadcast tensors of several types and sizes."""
    for dtype in DTYPES:
        for nitems in (0, 1, 1001, 70_000):
            blocks = [block(each, nitems, dtype) for each in range(nranks)]
            whole = torch.cat(blocks)
            place = torch.zeros_like(whole)
            dist.all_gather_single(place, blocks[rank])
            assert torch.equal(place, whole), (dtype, nitems)
            place[nitems * rank : nitems * (rank + 1)] = blocks[rank]
            own = place[nitems * rank : nitems * (rank + 1)]
            dist.all_gather_single(place, own)
            assert torch.equal(place, whole), (dtype, nitems)
            places = [torch.zeros_like(each) for each in blocks]
            dist.all_gather(places, blocks[rank])
            assert torch.equal(torch.cat(places), whole), (dtype, nitems)
            for root in {0, nranks - 1}:
                got = blocks[rank].clone()
                dist.broadcast(got, root)
                assert torch.equal(got, blocks[root]), (dtype, nitems)
    square = torch.zeros(4, 4)
    square += rank
    dist.broadcast(square.t()[1:], 0)  # not contiguous
    assert square[:, 1:].sum() == 0
    assert square[:, 0].sum() == 4 * rank


def reductions(rank: int, nranks: int) -> None:
    """Reduce and scatter, and compare with the sum in 32 bits, rounded once."""
    kinds = (torch.float32, torch.float64, torch.bfloat16, torch.float16)
    for dtype, nitems, (op, reduced) in itertools.product(kinds, (1, 6), OPS.items()):
        ranks = [block(each, nitems * nranks, dtype) + 1 for each in range(nranks)]
        exact = reduced(torch.stack(ranks).double()).to(dtype).chunk(nranks)[rank]
        place = torch.zeros(nitems, dtype=dtype)
        dist.reduce_scatter_single(place, ranks[rank], op=op)
        torch.testing.assert_close(place, exact, rtol=1e-6, atol=0)
        dist.reduce_scatter(place, list(ranks[rank].chunk(nranks)), op=op)
        torch.testing.assert_close(place, exact, rtol=1e-6, atol=0)
        whole = ranks[rank].clone()
        own = whole.chunk(nranks)[rank]
        dist.reduce_scatter_single(own, whole, op=op)  # in place
        torch.testing.assert_close(own, exact, rtol=1e-6, atol=0)
    for wrong, words in (
        (dist.ReduceOp.BXOR, "cannot reduce by"),
        (dist.ReduceOp.AVG, "cannot reduce torch.int64"),
    ):
        place = torch.zeros(1, dtype=torch.int64)
        with pytest.raises(ValueError, match=words):
            dist.reduce_scatter_single(place, torch.arange(nranks), op=wrong)


def works(rank: int, nranks: int) -> None:
    """Start collectives, and learn of their ends in every way."""
    place = torch.zeros(3 * nranks)
    started = dist.all_gather_single(place, block(rank, 3), async_op=True)
    future = started.get_future().then(lambda done: done.value()[0].sum())
    assert float(future.wait()) == sum(block(r, 3).sum() for r in range(nranks))
    assert started.is_completed()
    assert started.is_success()
    reduced = torch.zeros(3)
    started = dist.reduce_scatter_single(reduced, torch.ones(3 * nranks), async_op=True)
    while not started.is_completed():
        pass
    assert started.wait()
    assert float(started.get_future().wait()[0].sum()) == 3 * nranks
    places = [torch.zeros(2 * nranks), torch.zeros(5 * nranks)]
    coalescing = dist.distributed_c10d._coalescing_manager  # noqa: SLF001
    with coalescing(async_ops=True) as several:
        for each in places:
            dist.all_gather_single(
                each, torch.full((len(each) // nranks,), float(rank))
            )
    several.wait()
    assert all(each.view(nranks, -1)[-1].eq(nranks - 1).all() for each in places)


def rest(rank: int, nranks: int) -> None:
    """Call what gloo carries, and groups of some ranks."""
    total = torch.full((4,), float(rank))
    dist.all_reduce(total)
    assert total.eq(sum(range(nranks))).all()
    objects: list[int | None] = [None] * nranks
    dist.all_gather_object(objects, rank)
    assert objects == list(range(nranks))
    members = list(range(1, nranks))
    group = dist.new_group(members)
    if rank in members:
        place = torch.zeros(len(members))
        dist.all_gather_single(place, torch.tensor([float(rank)]), group=group)
        assert place.tolist() == members
    dist.barrier()


def memory(_rank: int, _nranks: int) -> None:
    """Use the memory of a result again, once no part of the result is in use."""
    pool = Pool()
    first = pool.empty(1000, torch.bfloat16)
    address, part = first.data_ptr(), first[10:20]
    del first
    second = pool.empty(1000, torch.bfloat16)
    assert second.data_ptr() != address
    del part
    third = pool.empty(500, torch.float32)
    assert third.data_ptr() == address
    assert pool.empty(0, torch.float32).numel() == 0


def parallel(rank: int, nranks: int) -> None:
    """Train by DistributedDataParallel and by FSDP1, and compare with one process."""
    case = CASES["plain"]
    truth = cases.model_of(case)
    cases.train(case, truth, lambda whole: whole)
    for wrap in (
        DistributedDataParallel,
        lambda model: FullyShardedDataParallel(model, device_id=torch.device("cpu")),
    ):
        model = wrap(cases.model_of(case))
        cases.train(case, model, lambda whole: whole.chunk(nranks)[rank])
        if isinstance(model, FullyShardedDataParallel):
            with FullyShardedDataParallel.summon_full_params(model):
                found = [each.detach().clone() for each in model.parameters()]
        else:
            found = list(model.parameters())
        for got, expected in zip(found, truth.parameters(), strict=True):
            torch.testing.assert_close(got, expected, rtol=2e-5, atol=2e-5)


def main() -> None:
    """Run all checks."""
    faulthandler.dump_traceback_later(cases.HANGS_S, exit=True)
    torch.set_num_threads(1)
    dist.init_process_group("mpimcast")
    rank, nranks = dist.get_rank(), dist.get_world_size()
    assert (rank, nranks) == (MPI.COMM_WORLD.Get_rank(), MPI.COMM_WORLD.Get_size())
    assert dist.get_backend() == "mpimcast"
    assert isinstance(dist.group.WORLD, mpimcast.torch.ProcessGroup)
    for check in (memory, gathers, reductions, works, rest, parallel):
        check(rank, nranks)
    dist.destroy_process_group()
    print("right")


if __name__ == "__main__":
    main()
