# SPDX-License-Identifier: BSD-3-Clause
"""One rank that trains a model which communicates more than it computes.

Started as ``python overlap_rank.py FOLDER``. FOLDER/spec.json has the width and the
number of layers, the number of steps and the settings. With TRACE the gathers and
reductions are traced. As its last act the rank makes FOLDER/RANK.end.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard

import mpimcast.torch


def main() -> None:
    """Train."""
    folder = Path(sys.argv[1])
    spec = json.loads((folder / "spec.json").read_text())
    width = spec["width"]
    torch.set_num_threads(1)
    dist.init_process_group("mpimcast")
    rank = dist.get_rank()
    torch.manual_seed(7)
    layers = [torch.nn.Linear(width, width, bias=False) for _ in range(spec["depth"])]
    model = torch.nn.Sequential(*layers)
    for layer in layers:
        fully_shard(layer, reshard_after_forward=True)
    fully_shard(model)
    mpimcast.torch.apply(model, **spec["settings"])
    for _ in range(spec["steps"]):
        model(torch.ones(2, width)).sum().backward()
    dist.destroy_process_group()
    (folder / f"{rank}.json").write_text(json.dumps({"wrong": [], "errors": []}))
    (folder / f"{rank}.end").touch()


if __name__ == "__main__":
    main()
