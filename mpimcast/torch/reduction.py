# SPDX-License-Identifier: BSD-3-Clause
"""Reduce-Scatter: the MPI library brings the summands, and torch adds them.

Each rank gets all summands of its block, by an Alltoall. So a rank sends (P - 1) / P of
its tensor, which is the least that a Reduce-Scatter can, with any number of ranks; the
libraries' own ones send more if that is no power of two. And numbers of 16 bits can be
added with 32, and rounded once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.distributed as dist
from mpi4py import MPI

from mpimcast.torch.tensors import flat_bytes

if TYPE_CHECKING:
    from collections.abc import Callable

_Kind = dist.ReduceOp.RedOpType

_HALVES = (torch.bfloat16, torch.float16)


def _sum(summands: torch.Tensor) -> torch.Tensor:
    half = summands.dtype in _HALVES
    return summands.sum(0, dtype=torch.float32 if half else summands.dtype)


# How the summands of a block, one for each rank, become its result.
_REDUCED: dict[dist.ReduceOp.RedOpType, Callable[[torch.Tensor], torch.Tensor]] = {
    _Kind.SUM: _sum,
    _Kind.AVG: lambda summands: _sum(summands).div_(len(summands)),
    _Kind.PRODUCT: lambda summands: summands.prod(0, dtype=summands.dtype),
    _Kind.MIN: lambda summands: summands.amin(0),
    _Kind.MAX: lambda summands: summands.amax(0),
}


def kind_of(op: dist.ReduceOp | dist.ReduceOp.RedOpType) -> dist.ReduceOp.RedOpType:
    """Return the kind of a reduction of torch's.

    Raises
    ------
    ValueError
        If there is none such here.
    """
    for kind in _REDUCED:
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


def start(comm: MPI.Intracomm, whole: torch.Tensor) -> tuple[torch.Tensor, MPI.Request]:
    """Start to bring the summands; return where they go, and the request.

    Parameters
    ----------
    comm
        A communicator that carries nothing else meanwhile.
    whole
        This rank's tensor, flat.

    Returns
    -------
    summands : torch.Tensor
        For each rank a row, its summands of this rank's block.
    request : MPI.Request
        It does not keep the tensors alive.
    """
    summands = torch.empty_like(whole)
    request = MPI.Intracomm.Ialltoall(comm, flat_bytes(whole), flat_bytes(summands))
    return summands.view(comm.Get_size(), -1), request


def finish(
    output: torch.Tensor, summands: torch.Tensor, kind: dist.ReduceOp.RedOpType
) -> None:
    """Reduce the summands, and leave the result in `output`.

    Parameters
    ----------
    kind
        What `kind_of` has returned.
    """
    output.copy_(_REDUCED[kind](summands))
