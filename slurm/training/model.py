# SPDX-License-Identifier: BSD-3-Clause
"""A transformer that predicts the next byte of a text, as GPT-2 is built."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import nn
from torch.nn import functional

NBYTES = 256  # the vocabulary


class Shape(NamedTuple):
    """The sizes of a model.

    Attributes
    ----------
    nlayers, width, nheads : int
        Of the transformer; `nheads` divides `width`.
    context : int
        How many bytes before a byte can tell of it.
    """

    nlayers: int
    width: int
    nheads: int
    context: int


class Block(nn.Module):
    """One layer: attention, then two linear maps, each added to what it gets."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        width = shape.width
        self.nheads = shape.nheads
        self.attention_norm = nn.LayerNorm(width)
        self.queries_keys_values = nn.Linear(width, 3 * width)
        self.attended = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)
        self.widen = nn.Linear(width, 4 * width)
        self.narrow = nn.Linear(4 * width, width)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Return what the layer makes of (batch, context, width)."""
        batch, context, width = inputs.shape
        parts = self.queries_keys_values(self.attention_norm(inputs))
        heads = parts.view(batch, context, 3, self.nheads, width // self.nheads)
        queries, keys, values = heads.permute(2, 0, 3, 1, 4)
        found = functional.scaled_dot_product_attention(
            queries, keys, values, is_causal=True
        )
        inputs = inputs + self.attended(found.transpose(1, 2).reshape_as(inputs))
        return inputs + self.narrow(functional.gelu(self.widen(self.norm(inputs))))


class Model(nn.Module):
    """The whole model; its weights are the same wherever it is made."""

    def __init__(self, shape: Shape, seed: int = 1) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.bytes = nn.Embedding(NBYTES, shape.width)
        self.places = nn.Embedding(shape.context, shape.width)
        self.blocks = nn.ModuleList(Block(shape) for _ in range(shape.nlayers))
        self.norm = nn.LayerNorm(shape.width)
        self.head = nn.Linear(shape.width, NBYTES, bias=False)
        for module in self.modules():
            if isinstance(module, nn.Linear | nn.Embedding):
                nn.init.normal_(module.weight, std=0.02)

    def forward(self, text: torch.Tensor) -> torch.Tensor:
        """Return the logits of the byte that follows each byte of (batch, context)."""
        hidden = self.bytes(text) + self.places.weight[: text.shape[1]]
        for block in self.blocks:
            hidden = block(hidden)
        return self.head(self.norm(hidden))
