# SPDX-License-Identifier: BSD-3-Clause
"""What the ranks of a training job train: small models, sharded in several ways."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

WIDTH, DEPTH, BATCH = 37, 3, 72

# A rank that runs for so long prints where it hangs, and ends before its test's limit.
HANGS_S = 200


@dataclass(frozen=True)
class Case:
    """One way to shard and train.

    Attributes
    ----------
    reshard : bool
        Whether parameters are freed after forward, and gathered anew for backward.
    prefetch : bool
        Whether gathers start before they are needed in forward.
    param_dtype, reduce_dtype : torch.dtype or None
        Of FSDP2's mixed precision.
    frozen : bool
        Whether some parameters are not trained.
    nparts : int
        How many parts of a batch accumulate gradients before they are reduced.
    separate : bool
        Whether FSDP2 reduces gradients in a process group of their own.
    hybrid : bool
        Whether pairs of four ranks shard, and both pairs have copies (HSDP).
    tolerance : float
        How far gradients and parameters may be from those of gloo: 16-bit numbers are
        rounded in another order.
    """

    reshard: bool = True
    prefetch: bool = True
    param_dtype: torch.dtype | None = None
    reduce_dtype: torch.dtype | None = None
    frozen: bool = False
    nparts: int = 1
    separate: bool = False
    hybrid: bool = False
    tolerance: float = 1e-6


BF16 = torch.bfloat16
CASES = {
    "plain": Case(),
    "no prefetch": Case(prefetch=False),
    "no reshard": Case(reshard=False),
    "neither": Case(reshard=False, prefetch=False),
    "frozen": Case(frozen=True),
    "accumulated": Case(nparts=3),
    "mixed": Case(param_dtype=BF16, reduce_dtype=torch.float32),
    "separate": Case(separate=True),
    "hybrid": Case(hybrid=True),
    "halves": Case(param_dtype=BF16, tolerance=2e-2),
    "halves accumulated": Case(param_dtype=BF16, frozen=True, nparts=2, tolerance=2e-2),
}


class Block(torch.nn.Module):
    """A layer whose parameters do not divide evenly among 2, 3 or 4 ranks."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = torch.nn.LayerNorm(WIDTH)
        self.wide = torch.nn.Linear(WIDTH, 2 * WIDTH + 1)
        self.narrow = torch.nn.Linear(2 * WIDTH + 1, WIDTH, bias=False)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Return the inputs with what the layer adds."""
        return inputs + self.narrow(torch.relu(self.wide(self.norm(inputs))))


def model_of(case: Case) -> torch.nn.Sequential:
    """Return the same model on every rank."""
    torch.manual_seed(7)
    blocks = [Block() for _ in range(DEPTH)]
    model = torch.nn.Sequential(*blocks, torch.nn.Linear(WIDTH, 5))
    if case.frozen:
        for parameter in blocks[1].parameters():
            parameter.requires_grad_(requires_grad=False)
        blocks[0].norm.requires_grad_(requires_grad=False)
    return model


def shard(case: Case, model: torch.nn.Sequential) -> None:
    """Shard a model by FSDP2: each block by itself, and what is left."""
    policy = MixedPrecisionPolicy(case.param_dtype, case.reduce_dtype)
    names = ("copies", "shards")
    mesh = (
        init_device_mesh("cpu", (2, 2), mesh_dim_names=names) if case.hybrid else None
    )
    for block in model[:-1]:
        fully_shard(
            block, mesh=mesh, reshard_after_forward=case.reshard, mp_policy=policy
        )
    fully_shard(model, mesh=mesh, mp_policy=policy)
    if case.separate:
        model.set_separate_reduce_scatter_group()


def batch_of(step: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the inputs and targets of a step, for all ranks together."""
    made = torch.Generator().manual_seed(100 + step)
    return (
        torch.randn(BATCH, WIDTH, generator=made),
        torch.randn(BATCH, 5, generator=made),
    )


def train(
    case: Case,
    model: torch.nn.Module,
    part: Callable[[torch.Tensor], torch.Tensor],
    nsteps: int = 3,
) -> list[float]:
    """Train a model, and leave the gradients of the last step in it.

    Parameters
    ----------
    part
        Returns this rank's part of a batch.

    Returns
    -------
    list
        The loss of each step on this rank.
    """
    parameters = [each for each in model.parameters() if each.requires_grad]
    optimizer = torch.optim.SGD(parameters, lr=0.1, momentum=0.9)
    losses = []
    for step in range(nsteps):
        optimizer.zero_grad()
        total = 0.0
        pieces = [part(each).chunk(case.nparts) for each in batch_of(step)]
        for number, (inputs, targets) in enumerate(zip(*pieces, strict=True)):
            if hasattr(model, "set_requires_gradient_sync"):
                model.set_requires_gradient_sync(number == case.nparts - 1)
            loss = torch.nn.functional.mse_loss(model(inputs).float(), targets)
            (loss / case.nparts).backward()
            total += float(loss.detach()) / case.nparts
        losses.append(total)
        optimizer.step()
    return losses
