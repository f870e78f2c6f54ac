# SPDX-License-Identifier: BSD-3-Clause
"""Lets a model that FSDP2 has sharded communicate by mpimcast."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from torch.distributed.fsdp import FSDPModule

from mpimcast.torch.all_gather import AllGather
from mpimcast.torch.reduce_scatter import ReduceScatter

if TYPE_CHECKING:
    import torch
    from mpi4py import MPI


class Collectives(NamedTuple):
    """What `apply` has given to a model's modules."""

    all_gather: AllGather
    reduce_scatter: ReduceScatter

    def free(self) -> None:
        """Free the communicators; the model can train no more. Collective.

        Without this, they are freed when the program ends.
        """
        self.all_gather.free()
        self.reduce_scatter.free()


def apply(
    model: torch.nn.Module,
    comm: MPI.Intracomm | None = None,
    *,
    prefetch: bool = True,
    **settings: Any,
) -> Collectives:
    """Let all modules that FSDP2 has sharded gather and reduce by mpimcast. Collective.

    Parameters
    ----------
    model
        A model to which, or to parts of which, ``fully_shard`` was applied.
    comm
        A communicator of all processes of torch's, MPI.COMM_WORLD by default.
    prefetch
        Whether each module's forward starts the gather of the module that comes next in
        ``model.modules()``. In backward FSDP2 does so by itself, in the order in which
        the modules ran forward.
    **settings
        Settings of mpimcast, as `mpimcast.Intracomm` takes them; `min_bytes` is 0 by
        default.

    Returns
    -------
    Collectives
        What gathers and what reduces. ``all_gather.stats()`` counts what was sent.

    Raises
    ------
    ValueError
        If no module of the model was sharded by FSDP2.
    """
    modules = _sharded(model)
    if not modules:
        raise ValueError(
            "no module of this model was sharded by FSDP2: call "
            "torch.distributed.fsdp.fully_shard on its blocks and on itself first"
        )
    collectives = Collectives(
        AllGather(comm, **settings), ReduceScatter(comm, **settings)
    )
    for module in modules:
        module.set_custom_all_gather(collectives.all_gather)
        module.set_custom_reduce_scatter(collectives.reduce_scatter)
    if prefetch:
        for module, following in pairwise(modules):
            module.set_modules_to_forward_prefetch([following])
    return collectives


def _sharded(model: torch.nn.Module) -> list[FSDPModule]:
    """Return the modules that FSDP2 has sharded, one of those that it has together."""
    found: dict[int, FSDPModule] = {}
    for module in model.modules():
        if isinstance(module, FSDPModule):
            found.setdefault(id(module._get_fsdp_state()), module)  # noqa: SLF001
    return list(found.values())
