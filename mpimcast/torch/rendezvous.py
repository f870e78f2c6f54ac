# SPDX-License-Identifier: BSD-3-Clause
"""How torch's processes find each other: by MPI, if MPI's launcher has started them.

torch's gloo needs a store, where its ranks leave their addresses. Rank 0 keeps it, at a
port that the kernel chooses, and MPI tells the others where it is.
"""

from __future__ import annotations

import os
import socket
from datetime import timedelta
from importlib import import_module
from typing import TYPE_CHECKING, Any

from mpi4py import MPI
from torch.distributed import TCPStore

if TYPE_CHECKING:
    from collections.abc import Iterator

# What torchrun and the like set. Whoever has set one of them wants torch's own way.
_VARIABLES = ("RANK", "WORLD_SIZE")

_LIMIT = timedelta(minutes=5)


def register() -> None:
    """Let ``init_process_group`` ask MPI where torch's own default has nothing to read.

    It always does so for ``init_method="mpimcast://"``.
    """
    # torch has no public way to change what its default does. Its package hides the
    # module behind a function of the same name.
    theirs = import_module("torch.distributed.rendezvous")
    theirs.register_rendezvous_handler("mpimcast", by_mpi)
    handlers = theirs._rendezvous_handlers  # noqa: SLF001
    by_environment = handlers["env"]

    def by_either(url: str, **options: Any) -> Iterator[tuple[Any, int, int]]:
        given = any(os.environ.get(name) for name in _VARIABLES) or "?" in url
        handler = by_environment if given else by_mpi
        yield from handler(url, **options)

    handlers["env"] = by_either


def by_mpi(
    _url: str, timeout: timedelta = _LIMIT, **_: Any
) -> Iterator[tuple[TCPStore, int, int]]:
    """Yield the store, this process's rank and the number of ranks. Collective."""
    world = MPI.Intracomm(MPI.COMM_WORLD)
    rank, nranks = world.Get_rank(), world.Get_size()
    host = os.environ.get("MASTER_ADDR") or _host(world)
    port = int(os.environ.get("MASTER_PORT", "0"))
    store = None
    if rank == 0:
        store = _store(host, port, nranks, timeout, keeps=True)
        port = store.port
    host, port = world.bcast((host, port))
    yield store or _store(host, port, nranks, timeout, keeps=False), rank, nranks


def _host(world: MPI.Intracomm) -> str:
    """Return an address by which all ranks reach this process's host. Collective."""
    node = world.Split_type(MPI.COMM_TYPE_SHARED)
    one = node.Get_size() == world.Get_size()
    node.Free()
    return "127.0.0.1" if one else socket.gethostname()


def _store(
    host: str, port: int, nranks: int, limit: timedelta, *, keeps: bool
) -> TCPStore:
    """Open the store at an address and a port, or make it if this rank keeps it."""
    return TCPStore(
        host, port, nranks, is_master=keeps, timeout=limit, wait_for_workers=False
    )
