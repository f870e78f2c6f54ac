# SPDX-License-Identifier: BSD-3-Clause
"""One rank of a training job in which rank 1 raises an exception in the second step.

Its argument says where: before the step, in forward, in backward before the last
layer's gradients are reduced, or after backward.
"""

from __future__ import annotations

import sys

import cases
import torch
import torch.distributed as dist
from cases import CASES

import mpimcast.torch


class Raises:
    """Raises at one place of the second step."""

    def __init__(self, place: str) -> None:
        self.place = place if dist.get_rank() == 1 else ""
        self.step = 0

    def at(self, place: str) -> None:
        """Raise if this is the place."""
        if self.step == 1 and place == self.place:
            raise ZeroDivisionError(f"on purpose, {place}")


def main() -> None:
    """Train until an exception ends it."""
    torch.set_num_threads(1)
    dist.init_process_group("mpimcast")
    raises = Raises(sys.argv[1])
    case = CASES["plain"]
    model = cases.model_of(case)
    cases.shard(case, model)
    mpimcast.torch.apply(model)
    block = model[1]
    block.wide.register_forward_hook(lambda *_: raises.at("forward"))
    block.wide.register_full_backward_hook(lambda *_: raises.at("backward"))
    inputs, targets = cases.batch_of(0)
    for raises.step in range(4):
        raises.at("before")
        torch.nn.functional.mse_loss(model(inputs), targets).backward()
        raises.at("after")
    print("trained")


if __name__ == "__main__":
    main()
