# SPDX-License-Identifier: BSD-3-Clause
"""The gathers and reductions of mpimcast, the MPI library and gloo, for FSDP2.

With all of them a gather is started when FSDP2 asks for it, and awaited when FSDP2
needs its result. A reduction is complete on return, as FSDP2 wants it on CPUs.

This module imports torch; `gloo` says where it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from mpi4py import MPI
from torch.distributed.fsdp._fully_shard import _fsdp_api, _fsdp_collectives

import mpimcast.torch
from mpimcast.torch import tensors


class Sharding(NamedTuple):
    """A gather of a model's parameters, and a reduction of its gradients."""

    gather: Any
    reduction: Any

    def give(self, modules: Sequence[Any]) -> None:
        """Have modules that FSDP2 has sharded use both."""
        for module in modules:
            module.set_custom_all_gather(self.gather)
            module.set_custom_reduce_scatter(self.reduction)


def sharding_of(world: MPI.Intracomm, transport: str, *, threads: bool) -> Sharding:
    """Return the gather and the reduction of a contender. Collective.

    Parameters
    ----------
    world
        A communicator of the ranks.
    transport
        mpimcast's transport, or `library` or `gloo`.
    threads
        Whether the library's gathers are blocking calls in a thread, instead of
        non-blocking ones.
    """
    if transport == "gloo":
        return Sharding(_GlooGather(), _fsdp_collectives.DefaultReduceScatter())
    if transport == "library":
        start = _InThread() if threads else _start
        return Sharding(
            _LibraryGather(MPI.Intracomm(world.Dup()), start),
            _LibraryReduction(MPI.Intracomm(world.Dup())),
        )
    settings: dict[str, Any] = {"transport": transport, "min_bytes": 0}
    return Sharding(
        mpimcast.torch.AllGather(world, **settings),
        mpimcast.torch.ReduceScatter(world, **settings),
    )


# ---- gloo ----------------------------------------------------------------------


class _GlooGather(_fsdp_collectives.DefaultAllGather):
    """FSDP2's own gather, except that it never waits before its result is needed."""

    def __call__(
        self,
        output_tensor: torch.Tensor,
        input_tensor: torch.Tensor,
        group: dist.ProcessGroup,
        **_: Any,  # whether FSDP2 is going to wait at once
    ) -> Any:
        """Start a gather."""
        return super().__call__(output_tensor, input_tensor, group, async_op=True)


# ---- the MPI library -------------------------------------------------------------

_Start = Callable[[MPI.Intracomm, torch.Tensor], Any]


def _start(comm: MPI.Intracomm, blocks: torch.Tensor) -> MPI.Request:
    return comm.Iallgather(MPI.IN_PLACE, blocks)


class _InThread:
    """Starts blocking gathers in a thread, in which they run one after the other."""

    def __init__(self) -> None:
        self._executor = ThreadPoolExecutor(1, "gathers")

    def __call__(self, comm: MPI.Intracomm, blocks: torch.Tensor) -> _Awaited:
        return _Awaited(self._executor.submit(comm.Allgather, MPI.IN_PLACE, blocks))


class _Awaited:
    """A call in the thread, as a Work awaits it."""

    def __init__(self, future: Future[None]) -> None:
        self._future = future

    def Wait(self) -> None:  # noqa: N802 -- mpi4py's name
        self._future.result()

    def Test(self) -> bool:  # noqa: N802 -- mpi4py's name
        return self._future.done()


class _LibraryGather(_fsdp_collectives.DefaultAllocMixin, _fsdp_api.AllGather):
    """The MPI library's gather, which `start` starts."""

    def __init__(self, comm: MPI.Intracomm, start: _Start) -> None:
        self._comm, self._start = comm, start

    def __call__(
        self,
        output_tensor: torch.Tensor,
        **_: Any,  # the input, which FSDP2 has put in its place, and torch's group
    ) -> mpimcast.torch.Work:
        """Start a gather."""
        blocks = tensors.flat_bytes(output_tensor)
        return mpimcast.torch.Work([self._start(self._comm, blocks)], [output_tensor])


class _LibraryReduction(_fsdp_collectives.DefaultAllocMixin, _fsdp_api.ReduceScatter):
    """The MPI library's reduction.

    MPI_Reduce_scatter is called, for which Open MPI has a ring, as it has not for
    MPI_Reduce_scatter_block.
    """

    def __init__(self, comm: MPI.Intracomm) -> None:
        self._comm = comm

    def __call__(
        self,
        output_tensor: torch.Tensor,
        input_tensor: torch.Tensor,
        op: Any,
        **_: Any,  # torch's group
    ) -> None:
        """Reduce, and return when the result is there."""
        summands, result = map(tensors.flat, (input_tensor, output_tensor))
        counts = [result.numel()] * self._comm.size
        self._comm.Reduce_scatter(summands, result, counts, MPI.SUM)
        if op == dist.ReduceOp.AVG:
            result.div_(self._comm.size)
