# SPDX-License-Identifier: BSD-3-Clause
"""Makes the backend "mpimcast" known to torch, and its way to find processes."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import torch.distributed as dist
from mpi4py import MPI

from mpimcast.torch import rendezvous
from mpimcast.torch.process_group import ProcessGroup

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

NAME = "mpimcast"


@functools.cache
def register() -> None:
    """Let ``dist.init_process_group("mpimcast")`` make our process groups."""
    dist.Backend.register_backend(NAME, _make, extended_api=True, devices=["cpu"])
    rendezvous.register()


def _make(options: Any, settings: Mapping[str, Any] | None) -> ProcessGroup:
    """Make a process group. Collective over its members.

    Parameters
    ----------
    options
        What torch says of the group (its _DistributedBackendOptions).
    settings
        What the program has passed as ``pg_options``: settings of mpimcast.
    """
    members = list(options.global_ranks_in_group)
    comm = _of_members(members) if members else _of_all(options)
    return ProcessGroup(
        options.store, comm, timeout=options.timeout, **(settings or {})
    )


def _of_all(options: Any) -> MPI.Intracomm:
    """Return a communicator of all processes, in torch's order. Collective.

    Raises
    ------
    RuntimeError
        If MPI does not know as many processes as torch.
    """
    nprocesses = MPI.COMM_WORLD.Get_size()
    if nprocesses != options.group_size:
        raise RuntimeError(
            f"torch has {options.group_size} ranks, but MPI has {nprocesses}: start "
            f"the job by torchrun, `mpirun -n {options.group_size} python ...` or "
            "srun. Under torchrun import mpimcast.torch before mpi4py.MPI, which "
            "initialises MPI, and have the mpirun of your MPI library in PATH"
        )
    world = MPI.Intracomm(MPI.COMM_WORLD)
    return MPI.Intracomm(world.Split(0, options.group_rank))


def _of_members(members: Sequence[int]) -> MPI.Intracomm:
    """Return a communicator of ranks of the default group. Collective over them."""
    whole = dist.group.WORLD
    if not isinstance(whole, ProcessGroup):
        raise RuntimeError(  # noqa: TRY004 -- the program's order of calls is wrong
            'a process group "mpimcast" of some ranks needs the default group to be of '
            'that backend, too: dist.init_process_group("mpimcast")'
        )
    return whole.subset(members)
