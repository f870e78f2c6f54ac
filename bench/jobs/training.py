# SPDX-License-Identifier: BSD-3-Clause
"""Training steps of PyTorch's FSDP2 over one of the contenders.

With all contenders FSDP2 starts the gather of the next layer before it needs it, in
forward and in backward, and waits for it no earlier. So all may overlap alike.

This module imports torch; `gloo` says where it is.
"""

from __future__ import annotations

import copy
from itertools import pairwise

import torch
from mpi4py import MPI
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

from bench.jobs.payload import LAYERS, MIXED, payload_bytes
from bench.jobs.sharding import Sharding

# A layer's columns, and how many rows of inputs each rank has: so few that computing
# takes much less time than communication.
_WIDTH, _BATCH = 256, 2

# How far gradients may be from those of one process, as a share of the greatest: they
# are summed in another order.
_TOLERANCE = {torch.float32: 1e-5, torch.bfloat16: 1e-2}


class _Layer(torch.nn.Module):
    """A layer with a matrix that it uses twice, as a GPT's feed-forward part has two.

    Parameters
    ----------
    nrows
        Of the matrix, whose columns are `_WIDTH`.
    """

    def __init__(self, nrows: int) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(nrows, _WIDTH) * nrows**-0.5)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Return the inputs with what the layer adds."""
        return inputs + (inputs @ self.weight.t()).relu() @ self.weight


class Step:
    """The forward and backward pass of a model of LAYERS equal layers.

    It has the methods of a Workload. Gradients are checked, which are wrong if a gather
    or a reduction was.

    Parameters
    ----------
    world
        A communicator of the ranks.
    kind
        STEP or MIXED; see payload.
    nbytes
        Bytes of a rank's shard of a layer, as it is gathered.
    sharding
        The gather of parameters, and the reduction of gradients.
    """

    def __init__(
        self,
        world: MPI.Intracomm,
        kind: str,
        nbytes: int,
        sharding: Sharding,
    ) -> None:
        self._rank, self._size = world.rank, world.size
        self._dtype = torch.bfloat16 if kind == MIXED else torch.float32
        nrows = nbytes * world.size // (_WIDTH * self._dtype.itemsize)
        torch.manual_seed(7)
        layers = [_Layer(nrows) for _ in range(LAYERS)]
        # FSDP2 has gathered parameters and their gradients in this type; so has one
        # process whose model has it.
        self._alone = copy.deepcopy(torch.nn.Sequential(*layers)).to(self._dtype)
        self._model = torch.nn.Sequential(*layers)
        policy = MixedPrecisionPolicy(self._dtype, torch.float32)
        for layer in layers:
            fully_shard(layer, reshard_after_forward=True, mp_policy=policy)
        fully_shard(self._model, mp_policy=policy)
        for layer, following in pairwise(layers):
            layer.set_modules_to_forward_prefetch([following])
        sharding.give(layers)
        self._sharding = sharding
        self.total_bytes = payload_bytes(kind, world.size, nbytes)

    def turn_to(self, number: int, turn: int) -> None:  # noqa: ARG002 -- as a Workload
        """Choose the inputs of step `number`."""
        made = torch.Generator().manual_seed(number)
        self._inputs = torch.randn(self._size, _BATCH, _WIDTH, generator=made)

    def fill(self) -> None:
        """Forget the gradients of the step before."""
        self._model.zero_grad()

    def run(self, _: object) -> None:
        """Run forward and backward."""
        self._backward(self._model, self._inputs[self._rank])

    def _backward(self, model: torch.nn.Module, inputs: torch.Tensor) -> None:
        model(inputs).float().square().sum().backward()

    def wrong_bytes(self) -> int:
        """Return how many bytes of this rank's gradients are not one process's."""
        means: list[torch.Tensor | float] = [0.0] * LAYERS
        for inputs in self._inputs.to(self._dtype):
            self._alone.zero_grad()
            self._backward(self._alone, inputs)
            grads = [
                each.grad.float() / self._size for each in self._alone.parameters()
            ]
            means = [sum(pair) for pair in zip(means, grads, strict=True)]
        return sum(
            self._differing(own.grad.to_local(), whole.chunk(self._size)[self._rank])
            for own, whole in zip(self._model.parameters(), means, strict=True)
        )

    def _differing(self, got: torch.Tensor, expected: torch.Tensor) -> int:
        bound = _TOLERANCE[self._dtype] * expected.abs().max()
        return 4 * int(((got - expected).abs() > bound).sum())

    def stats(self) -> dict[str, int]:
        """Return mpimcast's counters of gathers; none if others gather."""
        counted: dict[str, int] = getattr(self._sharding.gather, "stats", dict)()
        return counted
