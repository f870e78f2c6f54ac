# SPDX-License-Identifier: BSD-3-Clause
"""One rank that trains a few steps of a model which communicates more than it computes.

Its argument is the width of the layers. With TRACE its gathers and reductions are traced.
"""

from __future__ import annotations

import sys

import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard

import mpimcast.torch

DEPTH, STEPS = 6, 4


def main() -> None:
    """Train."""
    torch.set_num_threads(1)
    width = int(sys.argv[1])
    dist.init_process_group("mpimcast")
    torch.manual_seed(7)
    layers = [torch.nn.Linear(width, width, bias=False) for _ in range(DEPTH)]
    for layer in layers:
        fully_shard(layer, reshard_after_forward=True)
    model = torch.nn.Sequential(*layers)
    fully_shard(model)
    mpimcast.torch.apply(model)
    for step in range(STEPS):
        if step == 1:
            dist.barrier()
        model(torch.ones(2, width)).sum().backward()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
