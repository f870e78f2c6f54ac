# SPDX-License-Identifier: BSD-3-Clause
"""Has torchrun's processes take part in an MPI job, so that they can use mpimcast."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from mpimcast._launch import address, job

if TYPE_CHECKING:
    from torch.distributed import Store

# torchrun sets all of these in the processes that it starts.
_VARIABLES = ("TORCHELASTIC_RUN_ID", "RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


def join() -> None:
    """Take a place in an MPI job if torchrun has started this process. Collective then.

    It does nothing if MPI has been initialised: the process has its place already.

    Raises
    ------
    LauncherError
        If rank 0 cannot launch the job.
    """
    is_torchruns = all(name in os.environ for name in _VARIABLES)
    if is_torchruns and "mpi4py.MPI" not in sys.modules:
        rank, nranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        if nranks > 1:
            port = int(os.environ["MASTER_PORT"])
            own = address.towards(os.environ["MASTER_ADDR"], port)
            job.join(job.Process(rank, nranks, own), _store())


def _store() -> Store:
    """Return a part of torchrun's store that nothing else uses.

    The store outlives a restart of the processes, so each attempt has its own part.
    """
    import torch.distributed as dist

    store, _, _ = next(dist.rendezvous("env://"))
    attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    return dist.PrefixStore(f"mpimcast/launch/{attempt}", store)
