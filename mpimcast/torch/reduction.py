# SPDX-License-Identifier: BSD-3-Clause
"""The arithmetic of Reduce-Scatter: torch's operations by those of the MPI library."""

from __future__ import annotations

import torch
import torch.distributed as dist
from mpi4py import MPI

from mpimcast.torch.tensors import flat_bytes

_Kind = dist.ReduceOp.RedOpType

# MPI has no average: that is a sum, divided in the end.
_OPERATIONS = {
    _Kind.SUM: MPI.SUM,
    _Kind.AVG: MPI.SUM,
    _Kind.PRODUCT: MPI.PROD,
    _Kind.MIN: MPI.MIN,
    _Kind.MAX: MPI.MAX,
}
_HALVES = (torch.bfloat16, torch.float16)


def kind_of(op: dist.ReduceOp | dist.ReduceOp.RedOpType) -> dist.ReduceOp.RedOpType:
    """Return the kind of a reduction of torch's.

    Raises
    ------
    ValueError
        If MPI has none such.
    """
    for kind in _OPERATIONS:
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
    output: torch.Tensor,
    whole: torch.Tensor,
    kind: dist.ReduceOp.RedOpType,
) -> None:
    """Reduce the tensors `whole` of all ranks; each gets its block of the result.

    Numbers of 16 bits are added with 32, in the order of the ranks, and rounded once.
    So that no more bytes are sent than by a ring, each rank gets all summands of its
    block as they are: they make an Alltoall.

    Parameters
    ----------
    comm
        A communicator that carries nothing else meanwhile.
    output, whole
        Flat tensors; they may overlap.
    kind
        What `kind_of` has returned.
    """
    if whole.dtype not in _HALVES:
        result = torch.empty_like(output)
        MPI.Intracomm.Reduce_scatter_block(comm, whole, result, _OPERATIONS[kind])
    elif kind in {_Kind.SUM, _Kind.AVG}:
        summands = torch.empty_like(whole)
        MPI.Intracomm.Alltoall(comm, flat_bytes(whole), flat_bytes(summands))
        result = summands.view(comm.Get_size(), -1).sum(0, dtype=torch.float32)
    else:
        result = torch.empty(output.shape, dtype=torch.float32)
        MPI.Intracomm.Reduce_scatter_block(
            comm, whole.float(), result, _OPERATIONS[kind]
        )
    if kind == _Kind.AVG:
        result.div_(comm.Get_size())
    output.copy_(result)
