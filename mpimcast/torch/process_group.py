# SPDX-License-Identifier: BSD-3-Clause
"""A process group of torch's, whose gathers and broadcasts are mpimcast's."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.distributed as dist
from mpi4py import MPI

from mpimcast.torch import all_gather, tensors
from mpimcast.torch.communicators import duplicate, opened
from mpimcast.torch.reducer import Reducer
from mpimcast.torch.work import Work

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import timedelta

_Tensors = list[torch.Tensor]


class ProcessGroup(dist.ProcessGroup):
    """The process group that ``dist.init_process_group("mpimcast")`` makes.

    Its gathers, broadcasts and barriers are mpimcast's, its Reduce-Scatter goes by
    messages of the MPI library, and everything else is gloo's. Constructing it is
    collective.

    Parameters
    ----------
    store
        Where gloo's ranks leave their addresses.
    comm
        The group's ranks, in the group's order. It belongs to the group from now on.
    timeout
        How long gloo waits.
    **settings
        Settings of mpimcast, as `mpimcast.Intracomm` takes them; `min_bytes` is 0 by
        default.
    """

    def __init__(
        self,
        store: dist.Store,
        comm: MPI.Intracomm,
        *,
        timeout: timedelta,
        **settings: Any,
    ) -> None:
        rank, size = comm.Get_rank(), comm.Get_size()
        super().__init__(rank, size)
        # After a restart torchrun's store still holds the addresses of the old ranks.
        prefix = comm.bcast(f"gloo/{secrets.token_hex(8)}")
        gloo = dist.ProcessGroupGloo(
            dist.PrefixStore(prefix, store), rank, size, timeout
        )
        kind = dist.ProcessGroup.BackendType.GLOO
        self._set_default_backend(kind)
        self._register_backend(torch.device("cpu"), kind, gloo)
        self._plain = comm
        self._comm = opened(duplicate(comm, **settings))
        self._reducing = opened(duplicate(comm, **settings))
        self._reducer = Reducer(self._reducing)

    def getBackendName(self) -> str:  # noqa: N802 -- torch's name
        """Return the name of the backend."""
        return "mpimcast"

    def subset(self, members: Sequence[int]) -> MPI.Intracomm:
        """Return a communicator of some ranks. Collective over them."""
        whole = self._plain.Get_group()
        group = whole.Incl(list(members))
        try:
            return self._plain.Create_group(group)
        finally:
            group.Free()
            whole.Free()

    def stats(self) -> dict[str, int]:
        """Return this rank's counters; see `mpimcast.Intracomm.stats`."""
        return self._comm.stats()

    # ---- gathers -------------------------------------------------------------

    def all_gather_single(
        self,
        output: torch.Tensor,
        own: torch.Tensor,
        opts: Any = None,  # noqa: ARG002
    ) -> Work:
        """Gather all ranks' tensors, in one tensor."""
        return all_gather.start(self._comm, output, own)

    # The name of the same before torch 2.13.
    _allgather_base = all_gather_single

    def all_gather_single_coalesced(
        self,
        outputs: _Tensors,
        inputs: _Tensors,
        opts: Any = None,  # noqa: ARG002
    ) -> Work:
        """Gather several tensors of each rank, each in one tensor."""
        works = [
            all_gather.start(self._comm, output, each)
            for output, each in zip(outputs, inputs, strict=True)
        ]
        return Work(works, outputs)

    allgather_into_tensor_coalesced = all_gather_single_coalesced

    def allgather(
        self,
        outputs: list[_Tensors],
        inputs: _Tensors,
        opts: Any = None,  # noqa: ARG002
    ) -> Work:
        """Gather all ranks' tensors, each in a tensor of its own."""
        places, own = outputs[0], tensors.single(inputs)
        whole = torch.empty((len(places), *own.shape), dtype=own.dtype)
        own = own.contiguous()

        def finish() -> None:
            for place, block in zip(places, whole, strict=True):
                place.copy_(block)

        return Work([all_gather.start(self._comm, whole, own)], places, finish)

    def broadcast(self, buffers: _Tensors, opts: Any = None) -> Work:
        """Send the root's tensor to all ranks."""
        tensor = tensors.single(buffers)
        root = 0 if opts is None else opts.rootRank
        dense = tensor.contiguous()
        request = self._comm.Ibcast(tensors.flat_bytes(dense), root)

        def finish() -> None:
            if dense is not tensor:
                tensor.copy_(dense)

        return Work([request], [tensor], finish)

    def barrier(self, opts: Any = None) -> Work:  # noqa: ARG002
        """Wait until all ranks are here."""
        everyone = np.zeros(self._comm.Get_size(), "u1")
        return Work([self._comm.Iallgather(MPI.IN_PLACE, everyone)], [])

    # ---- reductions ----------------------------------------------------------

    def reduce_scatter_single(
        self,
        output: torch.Tensor,
        own: torch.Tensor,
        opts: Any = None,
    ) -> Work:
        """Reduce the tensors of all ranks; each gets its block of the result."""
        op = dist.ReduceOp.SUM if opts is None else opts.reduceOp
        return self._reducer.start(output, own, op)

    _reduce_scatter_base = reduce_scatter_single

    def reduce_scatter_single_coalesced(
        self, outputs: _Tensors, inputs: _Tensors, opts: Any = None
    ) -> Work:
        """Reduce several tensors of each rank."""
        works = [
            self.reduce_scatter_single(output, each, opts)
            for output, each in zip(outputs, inputs, strict=True)
        ]
        return Work(works, outputs)

    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced

    def reduce_scatter(
        self, outputs: _Tensors, inputs: list[_Tensors], opts: Any = None
    ) -> Work:
        """Reduce lists of tensors; each rank gets the tensor that has its number."""
        whole = torch.stack([each.contiguous() for each in inputs[0]])
        return self.reduce_scatter_single(tensors.single(outputs), whole, opts)

    # ---- the end -------------------------------------------------------------

    def shutdown(self) -> None:
        """Free the communicators. Collective, as ``destroy_process_group`` calls it."""
        if self._comm != MPI.COMM_NULL:
            self._reducer.close()
            for comm in (self._reducing, self._comm, self._plain):
                comm.Free()
        super().shutdown()
