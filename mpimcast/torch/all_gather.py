# SPDX-License-Identifier: BSD-3-Clause
"""FSDP2's gather of parameters, by mpimcast's non-blocking Allgather."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch
from mpi4py import MPI
from torch.distributed.fsdp._fully_shard import _fsdp_api

from mpimcast.torch import tensors
from mpimcast.torch.communicators import Communicators
from mpimcast.torch.pool import Pool
from mpimcast.torch.work import Work

if TYPE_CHECKING:
    from collections.abc import Sequence

    import torch.distributed as dist

    from mpimcast.comm import Intracomm


def start(
    comm: Intracomm, output_tensor: torch.Tensor, input_tensor: torch.Tensor
) -> Work:
    """Start an Allgather of tensors, which is in place if `input_tensor` lies there.

    Parameters
    ----------
    comm
        A communicator whose transport is open.
    output_tensor, input_tensor
        As for ``torch.distributed.all_gather_single``.
    """
    tensors.check_blocks(input_tensor, output_tensor, comm.Get_size())
    block, blocks = map(tensors.flat_bytes, (input_tensor, output_tensor))
    in_place = tensors.lies_in_place(block, blocks, comm.Get_rank())
    request = comm.Iallgather(MPI.IN_PLACE if in_place else block, blocks)
    return Work([request], [output_tensor])


class AllGather(_fsdp_api.AllGather):
    """FSDP2's gather of parameters, for ``FSDPModule.set_custom_all_gather``.

    It always returns a `Work`, which FSDP2 awaits when it needs the parameters. So a
    gather that FSDP2 starts early goes on beside computation and Reduce-Scatter.
    Constructing it is collective.

    Parameters
    ----------
    comm
        A communicator of all processes of torch's, MPI.COMM_WORLD by default. It is
        duplicated, for each process group that FSDP2 gathers in.
    **settings
        Settings of mpimcast, as `mpimcast.Intracomm` takes them; `min_bytes` is 0 by
        default.
    """

    def __init__(self, comm: MPI.Intracomm | None = None, **settings: Any) -> None:
        self._communicators = Communicators(comm, **settings)
        self._pool = Pool()

    def allocate(
        self,
        size: Sequence[int | torch.SymInt],
        *,
        dtype: torch.dtype,
        device: torch.device,
    ) -> torch.Tensor:
        """Return a tensor for the result of a gather."""
        if device.type != "cpu":
            return torch.empty(*size, dtype=dtype, device=device)
        sizes = [int(each) for each in size]
        return self._pool.empty(math.prod(sizes), dtype).view(sizes)

    def __call__(
        self,
        output_tensor: torch.Tensor,
        input_tensor: torch.Tensor,
        group: dist.ProcessGroup,
        async_op: bool = False,  # noqa: ARG002, FBT001, FBT002 -- as FSDP2 calls it
    ) -> Work:
        """Start a gather. The first in a group is collective, the others are local."""
        return start(self._communicators.of(group), output_tensor, input_tensor)

    def stats(self) -> dict[str, int]:
        """Return this rank's counters; see `mpimcast.Intracomm.stats`."""
        return self._communicators.stats()

    def free(self) -> None:
        """Free the communicators, after the last gather. Collective."""
        self._communicators.free()
