# SPDX-License-Identifier: BSD-3-Clause
"""Reduce-Scatter: the MPI library brings the summands, and torch adds them.

What a rank sends is (P - 1) / P of its tensor, the least that a Reduce-Scatter can, for
any number of ranks P. Partial results go round a ring: each rank adds its own block to
what the rank before it has sent. So a rank's link carries one message at a time, and if
ranks are in the order of hosts, a trunk between switches carries each block once.

Numbers of 16 bits would be rounded at every rank of a ring. So these come from all
ranks, one after the other, are added with 32 bits, and rounded once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.distributed as dist

from mpimcast._mpi.completion import abandon
from mpimcast.torch.tensors import flat_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from mpi4py import MPI

    # What a rank sends and receives at the same time, with the tensors that this uses.
    Round = tuple[Sequence[MPI.Request], object]
    # Yields the rounds of a reduction, and returns its result.
    Rounds = Generator[Round, None, torch.Tensor]

_Kind = dist.ReduceOp.RedOpType

_HALVES = (torch.bfloat16, torch.float16)

# While a rank adds one part of its blocks, the other one keeps its link busy.
_NPARTS = 2

# How two tensors are combined. A mean is a sum, which is divided in the end.
_COMBINED: dict[
    dist.ReduceOp.RedOpType, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
] = {
    _Kind.SUM: torch.add,
    _Kind.AVG: torch.add,
    _Kind.PRODUCT: torch.mul,
    _Kind.MIN: torch.minimum,
    _Kind.MAX: torch.maximum,
}


def kind_of(op: dist.ReduceOp | dist.ReduceOp.RedOpType) -> dist.ReduceOp.RedOpType:
    """Return the kind of a reduction of torch's.

    Raises
    ------
    ValueError
        If there is none such here.
    """
    for kind in _COMBINED:
        if op == kind:
            return kind
    raise ValueError(
        f"mpimcast.torch cannot reduce by {op}: use SUM, AVG, PRODUCT, MIN or MAX; "
        "FSDP2 does so after set_force_sum_reduction_for_comms(True)"
    )


def check(kind: dist.ReduceOp.RedOpType, dtype: torch.dtype) -> None:
    """Raise ValueError if items of this type cannot be reduced so."""
    if dtype.is_complex or (kind == _Kind.AVG and not dtype.is_floating_point):
        raise ValueError(f"mpimcast.torch cannot reduce {dtype} by {kind}")


def reduce_scatter(
    comm: MPI.Intracomm,
    whole: torch.Tensor,
    kind: dist.ReduceOp.RedOpType,
    wait: Callable[[MPI.Request, object], None],
) -> torch.Tensor:
    """Return this rank's block of the result. Collective.

    Parameters
    ----------
    comm
        A communicator that carries nothing else meanwhile.
    whole
        This rank's tensor, flat; its length is a multiple of the number of ranks.
    kind
        What `kind_of` has returned.
    wait
        Waits for a request, which uses the tensors that are its second argument.
    """
    size = comm.Get_size()
    rounds_of = _round_all if whole.dtype in _HALVES else _round_ring
    parts = whole.view(size, -1).tensor_split(_NPARTS, dim=1)
    results = _finish([rounds_of(comm, part, kind) for part in parts], wait)
    result = torch.cat(results)
    return (result / size if kind == _Kind.AVG else result).to(whole.dtype)


def _finish(
    reductions: Sequence[Rounds], wait: Callable[[MPI.Request, object], None]
) -> list[torch.Tensor]:
    """Run the rounds of some reductions in turn; return their results."""
    results: dict[Rounds, torch.Tensor] = {}
    begun: dict[Rounds, Round] = {}

    def go_on(reduction: Rounds) -> None:
        try:
            begun[reduction] = next(reduction)
        except StopIteration as end:
            results[reduction] = end.value

    for reduction in reductions:
        go_on(reduction)
    try:
        while begun:
            for reduction, (requests, tensors) in list(begun.items()):
                for request in requests:
                    wait(request, tensors)
                del begun[reduction]
                go_on(reduction)
    except BaseException:
        abandon(begun)
        raise
    return [results[reduction] for reduction in reductions]


def _round_ring(
    comm: MPI.Intracomm, blocks: torch.Tensor, kind: dist.ReduceOp.RedOpType
) -> Rounds:
    """Reduce rows, of which each rank gets one, by a ring."""
    rank, size = comm.Get_rank(), comm.Get_size()
    passed = blocks[rank - 1]
    for distance in range(2, size + 1):
        arriving = torch.empty_like(passed)
        received = comm.Irecv(flat_bytes(arriving), (rank - 1) % size)
        sent = comm.Isend(flat_bytes(passed), (rank + 1) % size)
        yield (received, sent), (arriving, passed)
        passed = _COMBINED[kind](arriving, blocks[rank - distance])
    return passed


def _round_all(
    comm: MPI.Intracomm, blocks: torch.Tensor, kind: dist.ReduceOp.RedOpType
) -> Rounds:
    """Reduce rows, of which each rank gets one, by asking each rank for its summand."""
    rank, size = comm.Get_rank(), comm.Get_size()
    summands = torch.empty_like(blocks)
    summands[rank] = blocks[rank]
    for distance in range(1, size):
        source, receiver = (rank - distance) % size, (rank + distance) % size
        received = comm.Irecv(flat_bytes(summands[source]), source)
        sent = comm.Isend(flat_bytes(blocks[receiver]), receiver)
        yield (received, sent), (summands, blocks)
    result, *others = summands.float()
    for other in others:
        result = _COMBINED[kind](result, other)
    return result
