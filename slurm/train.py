# SPDX-License-Identifier: BSD-3-Clause
"""Train a small GPT by FSDP2, and show what communication costs.

    mpirun -n 4 python slurm/train.py --collectives mpimcast --folder run

Each step prints its loss and time, how long this rank waited for communication that
nothing hid, and what the network interfaces of rank 0's host have sent. The folder gets
checkpoints, from which the same command resumes, `history.json`, a picture of the loss,
and with --timeline a picture of the last step for ui.perfetto.dev.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from mpi4py import MPI
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from training import checkpoint, collectives, corpus, timeline
from training.display import Display
from training.model import Model, Shape

DTYPES = {"bf16": torch.bfloat16, "fp32": torch.float32}

PRECISION = (
    "of gathered parameters and computation; auto: bf16 where rank 0 computes fast"
)

TIMELINE = (
    "write timeline.json: torch's operators in the last step beside mpimcast's "
    "operations and their stages"
)


def parse() -> argparse.Namespace:
    """Return the arguments of the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--collectives", choices=collectives.WAYS, default="mpimcast")
    add("--folder", type=Path, default=Path("train"), help="of all that is written")
    add("--text", type=Path, help="a file to learn; by default Python's own sources")
    add("--steps", type=int, default=20)
    add("--save-every", type=int, default=10, help="steps between two checkpoints")
    add("--layers", type=int, default=10)
    add("--width", type=int, default=512)
    add("--heads", type=int, default=8)
    add("--context", type=int, default=64, help="bytes")
    add("--batch", type=int, default=2, help="excerpts of a rank in a step")
    add("--rate", type=float, default=1e-3, help="of learning")
    add("--precision", choices=[*DTYPES, "auto"], default="auto", help=PRECISION)
    add("--reduce", choices=DTYPES, default="fp32", help="precision of reductions")
    add("--timeline", action="store_true", help=TIMELINE)
    chosen = parser.parse_args()
    if chosen.timeline and chosen.collectives == "gloo":
        parser.error(
            "--timeline shows what mpimcast traces, and gloo leaves it no work"
        )
    return chosen


def precision(wanted: str) -> str:
    """Return the name of a type in DTYPES, the same on all ranks. Collective.

    Without instructions for bf16, a processor takes up to 80 times as long with it.
    """
    words = set(Path("/proc/cpuinfo").read_text().split())
    found = ["bf16" if words & {"avx512_bf16", "amx_bf16", "bf16"} else "fp32"]
    dist.broadcast_object_list(found)
    return found[0] if wanted == "auto" else wanted


def sharded(chosen: argparse.Namespace) -> torch.nn.Module:
    """Return the model, each of its layers sharded by itself."""
    shape = Shape(chosen.layers, chosen.width, chosen.heads, chosen.context)
    model = Model(shape)
    policy = MixedPrecisionPolicy(DTYPES[chosen.precision], DTYPES[chosen.reduce])
    for block in model.blocks:
        fully_shard(block, mp_policy=policy)
    fully_shard(model, mp_policy=policy)
    return model


def train_step(
    model: torch.nn.Module,
    optimizer: torch.optim.Optimizer,
    batch: tuple[torch.Tensor, torch.Tensor],
) -> float:
    """Train on this rank's part of a batch; return the mean loss of all ranks."""
    rank, nranks = dist.get_rank(), dist.get_world_size()
    text, following = (part.chunk(nranks)[rank] for part in batch)
    optimizer.zero_grad()
    logits = model(text).float().flatten(0, 1)
    loss = torch.nn.functional.cross_entropy(logits, following.flatten())
    loss.backward()
    optimizer.step()
    mean = loss.detach().clone()
    dist.all_reduce(mean)
    return float(mean) / nranks


def draw(path: Path, history: list[dict[str, Any]], title: str) -> None:
    """Draw the loss of all steps, if there is matplotlib."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return
    figure = Figure(figsize=(6, 3.5), layout="constrained")
    axes = figure.subplots()
    axes.plot([each["step"] for each in history], [each["loss"] for each in history])
    axes.set(xlabel="step", ylabel="loss (nats a byte)", title=title)
    figure.savefig(path, dpi=130)


def line(each: dict[str, Any]) -> str:
    """Return what is said of a step."""
    return (
        f"step {each['step']:4}: loss {each['loss']:.4f}, {each['seconds']:.2f} s, "
        f"exposed communication {each['exposed_s']:.2f} s, "
        f"{each['sent_bytes'] / 1e6:,.1f} MB sent"
    )


def run(chosen: argparse.Namespace, display: Display) -> list[dict[str, Any]]:
    """Train, and return what there is to say of each step."""
    model = sharded(chosen)
    optimizer = torch.optim.AdamW(model.parameters(), lr=chosen.rate)
    history = checkpoint.load(chosen.folder, model, optimizer)
    if history:
        display.say(f"resumed after step {history[-1]['step']}")
    text = corpus.read(chosen.text)
    size = chosen.batch * dist.get_world_size()
    settings = timeline.settings(chosen.folder) if chosen.timeline else {}
    meter, used = collectives.choose(chosen.collectives, model, **settings)
    meter.take()
    for step in range(len(history) + 1, chosen.steps + 1):
        display.advance_to(step - 1)
        batch = corpus.batch(text, step, size, chosen.context)
        is_last = step == chosen.steps
        with timeline.profiled(chosen.folder, wanted=chosen.timeline and is_last):
            begin_s = time.monotonic()
            loss = train_step(model, optimizer, batch)
            exposed_s, sent_bytes = meter.take()
            history.append(
                {
                    "step": step,
                    "loss": loss,
                    "seconds": time.monotonic() - begin_s,
                    "exposed_s": exposed_s,
                    "sent_bytes": sent_bytes,
                }
            )
        display.say(line(history[-1]))
        if step % chosen.save_every == 0 or is_last:
            checkpoint.save(chosen.folder, step, model, optimizer, history)
            meter.take()
    if used is not None:
        used.free()
    return history


def title_of(chosen: argparse.Namespace) -> str:
    """Return what the training is, in a line."""
    shape = Shape(chosen.layers, chosen.width, chosen.heads, chosen.context)
    nparameters = sum(each.numel() for each in Model(shape).parameters())
    return (
        f"{nparameters / 1e6:.1f} M parameters on {dist.get_world_size()} ranks by "
        f"{chosen.collectives}, {chosen.precision}"
    )


def main() -> None:
    """Train."""
    chosen = parse()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    chosen.precision = precision(chosen.precision)
    first = dist.get_rank() == 0
    chosen.folder.mkdir(parents=True, exist_ok=True)
    title = title_of(chosen)
    with Display(chosen.steps, shown=first) as display:
        display.say(title)
        display.say(
            f"Ctrl-C ends it; the same command resumes, as every {chosen.save_every} "
            "steps there is a checkpoint"
        )
        history = run(chosen, display)
        if first:
            (chosen.folder / "history.json").write_text(json.dumps(history))
            draw(chosen.folder / "loss.png", history, title)
        display.say(f"see {chosen.folder}/loss.png and history.json")
    MPI.COMM_WORLD.Barrier()
    if first and chosen.timeline:
        timeline.write(chosen.folder)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
