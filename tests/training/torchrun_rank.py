# SPDX-License-Identifier: BSD-3-Clause
"""One rank of torchrun's, which gathers by mpimcast and reduces by gloo.

With an argument, rank 1 raises an exception before the last collective.
"""

from __future__ import annotations

import sys

import torch
import torch.distributed as dist

import mpimcast.torch

NITEMS = 10_000


def main() -> None:
    """Call collectives, and print what this rank is."""
    torch.set_num_threads(1)
    dist.init_process_group("mpimcast")
    rank, nranks = dist.get_rank(), dist.get_world_size()
    place = torch.zeros(nranks * NITEMS)
    dist.all_gather_single(place, torch.full((NITEMS,), float(rank)))
    assert place.view(nranks, -1).eq(torch.arange(nranks)[:, None]).all()
    total = torch.ones(3) * rank
    dist.all_reduce(total)
    assert total.eq(sum(range(nranks))).all()
    if len(sys.argv) > 1 and rank == 1:
        raise ZeroDivisionError("on purpose")
    dist.barrier()
    assert isinstance(dist.group.WORLD, mpimcast.torch.ProcessGroup)
    stats = dist.group.WORLD.stats()
    dist.destroy_process_group()
    print(f"rank {rank} of {nranks}: {stats['epochs'] + stats['node_operations']}")


if __name__ == "__main__":
    main()
