# SPDX-License-Identifier: BSD-3-Clause
"""How the ranks communicate: by gloo, by the MPI library, or by mpimcast.

All of them gather ahead, so that they overlap alike; and all are timed alike.
"""

from __future__ import annotations

import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.fsdp import FSDPModule
from torch.distributed.fsdp._fully_shard import _fsdp_api, _fsdp_collectives

import mpimcast.torch

WAYS = ("gloo", "mpi", "mpimcast")


class Meter:
    """How long this rank waited for others, and what its host has sent."""

    def __init__(self) -> None:
        self._waited_ns = 0
        self._sent_bytes = _sent_bytes()

    def waiting(self, call: Any, *arguments: Any, **options: Any) -> Any:
        """Call a function that may wait, and count its time."""
        begin_ns = time.monotonic_ns()
        try:
            return call(*arguments, **options)
        finally:
            self._waited_ns += time.monotonic_ns() - begin_ns

    def take(self) -> tuple[float, int]:
        """Return the seconds and the bytes since the last call."""
        before = self._waited_ns, self._sent_bytes
        self._waited_ns, self._sent_bytes = 0, _sent_bytes()
        return before[0] / 1e9, self._sent_bytes - before[1]


def _sent_bytes() -> int:
    """Return what all network interfaces of this host have sent."""
    files = Path("/sys/class/net").glob("*/statistics/tx_bytes")
    return sum(int(each.read_text()) for each in files)


class _Timed:
    """A collective under way, whose wait is counted."""

    def __init__(self, work: Any, meter: Meter) -> None:
        self._work, self._meter = work, meter

    def Wait(self) -> None:  # noqa: N802 -- as mpimcast.torch.Work calls it
        self._meter.waiting(self._work.wait)

    def Test(self) -> bool:  # noqa: N802
        return bool(self._work.is_completed())


class _Gather(_fsdp_api.AllGather):
    """A gather that is awaited only when its result is needed, and counted."""

    def __init__(self, inner: _fsdp_api.AllGather, meter: Meter) -> None:
        self._inner, self._meter = inner, meter
        self.allocate = inner.allocate

    def allocate(self, *_: Any, **__: Any) -> torch.Tensor:
        """Return memory for a result; each object has that of its inner one."""
        raise NotImplementedError

    def __call__(
        self,
        output_tensor: torch.Tensor,
        input_tensor: torch.Tensor,
        group: dist.ProcessGroup,
        async_op: bool = False,  # noqa: ARG002, FBT001, FBT002 -- as FSDP2 calls it
    ) -> mpimcast.torch.Work:
        """Start a gather."""
        work = self._meter.waiting(
            self._inner, output_tensor, input_tensor, group, async_op=True
        )
        return mpimcast.torch.Work([_Timed(work, self._meter)], [output_tensor])


class _Reduction(_fsdp_api.ReduceScatter):
    """A reduction that is counted."""

    def __init__(self, inner: _fsdp_api.ReduceScatter, meter: Meter) -> None:
        self._inner, self._meter = inner, meter
        self.allocate = inner.allocate

    def allocate(self, *_: Any, **__: Any) -> torch.Tensor:
        """Return memory for a result; each object has that of its inner one."""
        raise NotImplementedError

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        """Reduce, and return when the result is there."""
        return self._meter.waiting(self._inner, *arguments, **options)


def choose(
    way: str, model: torch.nn.Module, **settings: Any
) -> tuple[Meter, mpimcast.torch.Collectives | None]:
    """Let a sharded model communicate in one of WAYS. Collective.

    Parameters
    ----------
    way, model
        One of WAYS, and the model.
    **settings
        Settings of mpimcast, which has none to do with gloo.

    Returns
    -------
    meter : Meter
        Times and counts what follows.
    used : mpimcast.torch.Collectives or None
        What is to be freed after the training.
    """
    meter = Meter()
    used = None
    gather: Any = _fsdp_collectives.DefaultAllGather()
    reduction: Any = _fsdp_collectives.DefaultReduceScatter()
    if way != "gloo":
        settings |= {"transport": "mpi"} if way == "mpi" else {}
        used = gather, reduction = mpimcast.torch.apply(model, **settings)
    modules = [each for each in model.modules() if isinstance(each, FSDPModule)]
    for module in modules:
        module.set_custom_all_gather(_Gather(gather, meter))
        module.set_custom_reduce_scatter(_Reduction(reduction, meter))
    for module, following in pairwise(modules):
        module.set_modules_to_forward_prefetch([following])
    return meter, used
