# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch's training over mpimcast: FSDP's collectives, and a process group backend.

``apply(model, comm)`` lets FSDP2 gather parameters by multicast, beside a
Reduce-Scatter. ``dist.init_process_group("mpimcast")`` lets programs of other
kinds run unchanged. Importing this package imports torch, initialises MPI, and makes
the backend known to torch. README.md in the folder above has a section on it.
"""

from mpimcast.torch import torchrun, version

version.require()
torchrun.join()

# These modules import torch, whose version has been checked by now, and initialise MPI,
# which must not happen before this process has joined its job.
from mpimcast.torch import backend
from mpimcast.torch.all_gather import AllGather
from mpimcast.torch.fsdp import Collectives, apply
from mpimcast.torch.process_group import ProcessGroup
from mpimcast.torch.reduce_scatter import ReduceScatter
from mpimcast.torch.work import Work

backend.register()

__all__ = [
    "AllGather",
    "Collectives",
    "ProcessGroup",
    "ReduceScatter",
    "Work",
    "apply",
]
