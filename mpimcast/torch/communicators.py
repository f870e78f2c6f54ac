# SPDX-License-Identifier: BSD-3-Clause
"""The communicators whose ranks are those of torch's process groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch.distributed as dist
from mpi4py import MPI

from mpimcast.comm import Intracomm

if TYPE_CHECKING:
    from collections.abc import Sequence


def duplicate(comm: MPI.Intracomm, **settings: Any) -> Intracomm:
    """Return a duplicate that has other settings, too. Collective.

    Unless they say otherwise, mpimcast carries blocks of all sizes. By the MPI library
    a small gather would make no progress until someone calls MPI, and would wait
    forever for a rank that has ended.

    Parameters
    ----------
    comm
        A communicator of mpimcast, whose settings the duplicate has, or of mpi4py.
    **settings
        Settings that the duplicate has in addition, or instead.
    """
    given: dict[str, Any] = {}
    if isinstance(comm, Intracomm):
        given = comm._need_state().config.given()  # noqa: SLF001 -- our own class
    return Intracomm(MPI.Intracomm(comm).Dup(), **{"min_bytes": 0, **given, **settings})


def opened(comm: Intracomm) -> Intracomm:
    """Return a communicator with its transport open for requests. Collective."""
    comm.node_barrier()
    return comm


class Communicators:
    """The communicators of one purpose, one for each process group. Collective.

    Parameters
    ----------
    comm
        A communicator of all processes that ever call; it is duplicated.
    **settings
        Settings of mpimcast, as `mpimcast.Intracomm` takes them.
    """

    def __init__(self, comm: MPI.Intracomm | None, **settings: Any) -> None:
        self._whole = duplicate(comm or MPI.COMM_WORLD, **settings)
        own = dist.get_rank() if dist.is_initialized() else self._whole.Get_rank()
        # For each rank of torch's, that of `_whole`.
        ranks = MPI.Intracomm.allgather(self._whole, own)
        self._ranks = {torch_rank: rank for rank, torch_rank in enumerate(ranks)}
        self._found: dict[tuple[int, ...], Intracomm] = {}

    def of(self, group: dist.ProcessGroup) -> Intracomm:
        """Return the communicator of a group. Its first call is collective.

        Raises
        ------
        ValueError
            If the communicator lacks a rank of the group.
        """
        members = tuple(dist.get_process_group_ranks(group))
        found = self._found.get(members)
        if found is None:
            found = self._found[members] = opened(self._make(members))
        return found

    def _make(self, members: Sequence[int]) -> Intracomm:
        missing = [member for member in members if member not in self._ranks]
        if missing:
            raise ValueError(
                f"the process group has ranks {missing} of torch's, which are not in "
                "the communicator: pass one of all processes, such as MPI.COMM_WORLD"
            )
        ranks = [self._ranks[member] for member in members]
        if ranks == list(range(self._whole.Get_size())):
            return self._whole
        whole = self._whole.Get_group()
        group = whole.Incl(ranks)
        try:
            return self._whole.Create_group(group)
        finally:
            group.Free()
            whole.Free()

    def stats(self) -> dict[str, int]:
        """Return this rank's counters, summed over groups; see `Intracomm.stats`."""
        total: dict[str, int] = {}
        for comm in self._all():
            for name, value in comm.stats().items():
                total[name] = total.get(name, 0) + value
        return total

    def free(self) -> None:
        """Free the communicators. Collective."""
        for comm in self._all():
            comm.Free()
        self._found.clear()

    def _all(self) -> list[Intracomm]:
        """Return the communicators: that of all processes, which may be a group's."""
        groups = (comm for comm in self._found.values() if comm is not self._whole)
        return [self._whole, *groups]
