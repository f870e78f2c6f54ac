# SPDX-License-Identifier: BSD-3-Clause
"""What collectives need to know of tensors: their bytes, and whether they fit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Sequence


def flat_bytes(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor's memory as one row of bytes, which mpi4py takes by DLPack.

    The row keeps the memory alive. ``Tensor.numpy()`` would not do: it forbids torch
    to resize the memory ever after, as FSDP does to free it.

    Raises
    ------
    ValueError
        As `flat` does.
    """
    return flat(tensor).view(torch.uint8)


def flat(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor's items as one row, in the same memory, without its gradient.

    Raises
    ------
    ValueError
        If the tensor is not contiguous, or is not in the host's memory.
    """
    if tensor.device.type != "cpu":
        raise ValueError(
            f"a tensor on {tensor.device}: mpimcast.torch takes tensors of the host's "
            "memory only; copy it to the host first"
        )
    if not tensor.is_contiguous():
        raise ValueError(
            f"a tensor of shape {tuple(tensor.shape)} with strides {tensor.stride()}: "
            "collectives need contiguous tensors, such as tensor.contiguous() returns"
        )
    return tensor.detach().view(-1)


def lies_in_place(block: torch.Tensor, blocks: torch.Tensor, rank: int) -> bool:
    """Return whether a rank's block is already where the result will have it.

    Parameters
    ----------
    block, blocks
        The bytes of the rank's own block, and of the blocks of all ranks.
    """
    return bool(block.data_ptr() == blocks.data_ptr() + rank * block.numel())


def check_blocks(block: torch.Tensor, blocks: torch.Tensor, nranks: int) -> None:
    """Raise ValueError unless one tensor has as much room as all ranks' blocks need.

    Parameters
    ----------
    block, blocks
        One rank's tensor, and the tensor of all ranks.
    """
    if block.dtype != blocks.dtype or block.numel() * nranks != blocks.numel():
        raise ValueError(
            f"{blocks.numel()} items of {blocks.dtype} are not the blocks of {nranks} "
            f"ranks with {block.numel()} items of {block.dtype} each"
        )


def single(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    """Return the only tensor of a list, as calls of one device per rank pass it."""
    if len(tensors) != 1:
        raise ValueError(f"{len(tensors)} tensors of this rank: pass one")
    return tensors[0]
