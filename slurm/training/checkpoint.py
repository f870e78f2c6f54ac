# SPDX-License-Identifier: BSD-3-Clause
"""Checkpoints: what a job needs to go on where an earlier one has stopped."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed import checkpoint
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict

_NAME = "latest.json"


def save(
    folder: Path,
    step: int,
    model: torch.nn.Module,
    optimizer: torch.optim.Optimizer,
    history: list[dict[str, Any]],
) -> None:
    """Write a checkpoint after `step` steps. Collective.

    It becomes the latest only when all ranks have written their parts.
    """
    weights, state = get_state_dict(model, optimizer)
    parts = f"step-{step}"
    checkpoint.save(
        {"model": weights, "optimizer": state}, checkpoint_id=folder / parts
    )
    if dist.get_rank() == 0:
        draft = folder / f"{_NAME}.part"
        draft.write_text(json.dumps({"parts": parts, "history": history}))
        draft.replace(folder / _NAME)
    dist.barrier()


def load(
    folder: Path, model: torch.nn.Module, optimizer: torch.optim.Optimizer
) -> list[dict[str, Any]]:
    """Read the latest checkpoint, if there is one; return the history. Collective."""
    found: list[Any] = [None]
    if dist.get_rank() == 0 and (folder / _NAME).exists():
        found = [json.loads((folder / _NAME).read_text())]
    dist.broadcast_object_list(found)
    if found[0] is None:
        return []
    weights, state = get_state_dict(model, optimizer)
    whole = {"model": weights, "optimizer": state}
    checkpoint.load(whole, checkpoint_id=folder / found[0]["parts"])
    set_state_dict(
        model,
        optimizer,
        model_state_dict=whole["model"],
        optim_state_dict=whole["optimizer"],
    )
    history: list[dict[str, Any]] = found[0]["history"]
    return history
