# SPDX-License-Identifier: BSD-3-Clause
"""FSDP2's reduction of gradients, by the MPI library's messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch.distributed.fsdp._fully_shard import _fsdp_api

from mpimcast.torch.communicators import Communicators
from mpimcast.torch.reducer import Reducer

if TYPE_CHECKING:
    from collections.abc import Sequence

    import torch.distributed as dist
    from mpi4py import MPI

    from mpimcast.torch.work import Work


class ReduceScatter(_fsdp_api.ReduceScatter):
    """FSDP2's reduction, for ``FSDPModule.set_custom_reduce_scatter``.

    A call returns when the result is there, since FSDP2 does not wait for it on CPUs.
    Meanwhile gathers that were started before go on. Constructing it is collective.

    Parameters
    ----------
    comm
        A communicator of all processes of torch's, MPI.COMM_WORLD by default. It is
        duplicated, for each process group that FSDP2 reduces in.
    **settings
        Settings of mpimcast, as `mpimcast.Intracomm` takes them.
    """

    def __init__(self, comm: MPI.Intracomm | None = None, **settings: Any) -> None:
        self._communicators = Communicators(comm, **settings)
        self._reducers: dict[int, Reducer] = {}

    def allocate(
        self,
        size: Sequence[int | torch.SymInt],
        *,
        dtype: torch.dtype,
        device: torch.device,
    ) -> torch.Tensor:
        """Return a tensor for the summands, or for the result."""
        return torch.empty(*size, dtype=dtype, device=device)

    def __call__(
        self,
        output_tensor: torch.Tensor,
        input_tensor: torch.Tensor,
        group: dist.ProcessGroup,
        op: dist.ReduceOp | dist.ReduceOp.RedOpType,
        async_op: bool = False,  # noqa: FBT001, FBT002 -- as FSDP2 calls it
    ) -> Work | None:
        """Reduce, and return when the result is there, or a `Work` if `async_op`."""
        comm = self._communicators.of(group)
        reducer = self._reducers.get(id(comm))
        if reducer is None:
            reducer = self._reducers[id(comm)] = Reducer(comm)
        work = reducer.start(output_tensor, input_tensor, op)
        if async_op:
            return work
        work.wait()
        return None

    def free(self) -> None:
        """Free the communicators, after the last reduction. Collective."""
        for reducer in self._reducers.values():
            reducer.close()
        self._reducers.clear()
        self._communicators.free()
