# SPDX-License-Identifier: BSD-3-Clause
"""One rank that trains the same models by gloo, by mpimcast, and alone.

It fails unless losses, gradients and parameters are equal in the end. Its arguments are
the names of cases, all by default.
"""

from __future__ import annotations

import faulthandler
import sys

import cases
import torch
import torch.distributed as dist
from cases import CASES, Case
from mpi4py import MPI

import mpimcast.torch

# One process does not round as FSDP2 does with 16-bit numbers.
ALONE = 2e-5


def results(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Return all parameters and gradients of a model, whole on each rank."""
    found = {}
    for name, parameter in model.named_parameters():
        found[name] = parameter.detach()
        if parameter.grad is not None:
            found[f"{name}.grad"] = parameter.grad
    return {
        name: each.full_tensor() if hasattr(each, "full_tensor") else each
        for name, each in found.items()
    }


# The losses of a rank, and what `results` returns.
Trained = tuple[list[float], dict[str, torch.Tensor]]


def trained(case: Case, *, applies: bool) -> Trained:
    """Train a sharded model; return the losses of this rank, and the results."""
    rank, nranks = dist.get_rank(), dist.get_world_size()
    model = cases.model_of(case)
    cases.shard(case, model)
    used = mpimcast.torch.apply(model, prefetch=case.prefetch) if applies else None
    losses = cases.train(case, model, lambda whole: whole.chunk(nranks)[rank])
    found = results(model)
    if used is not None and nranks > 1:
        stats = used.all_gather.stats()
        carried = stats["epochs"] + stats["node_operations"]
        assert carried >= 3 * cases.DEPTH, "mpimcast has not carried the gathers"
        used.free()
    return losses, found


def compare(
    name: str,
    case: Case,
    got: Trained,
    truth: Trained,
) -> None:
    """Raise AssertionError unless all is as gloo's."""
    assert got[1].keys() == truth[1].keys()
    for key, value in truth[1].items():
        torch.testing.assert_close(
            *(got[1][key], value),
            rtol=case.tolerance,
            atol=case.tolerance,
            msg=lambda text, key=key: f"{name}: {key}: {text}",
        )
    torch.testing.assert_close(got[0], truth[0], rtol=case.tolerance, atol=1e-6)


def alone(case: Case) -> dict[str, torch.Tensor]:
    """Train the whole batch in this process."""
    model = cases.model_of(case)
    cases.train(case, model, lambda whole: whole)
    return results(model)


def main() -> None:
    """Train all cases in all ways, and compare."""
    faulthandler.dump_traceback_later(cases.HANGS_S, exit=True)
    torch.set_num_threads(1)
    four = MPI.COMM_WORLD.Get_size() == 4
    chosen = [name for name in sys.argv[1:] or CASES if four or not CASES[name].hybrid]
    dist.init_process_group("gloo")
    truths = {name: trained(CASES[name], applies=False) for name in chosen}
    for name in chosen:
        case = CASES[name]
        if case.param_dtype is None:
            torch.testing.assert_close(
                truths[name][1], alone(case), rtol=ALONE, atol=ALONE
            )
        compare(f"apply, {name}", case, trained(case, applies=True), truths[name])
    dist.destroy_process_group()
    dist.init_process_group("mpimcast")
    for name in chosen:
        case = CASES[name]
        for applies in (False, True):
            got = trained(case, applies=applies)
            compare(f"backend, apply={applies}, {name}", case, got, truths[name])
    dist.destroy_process_group()
    MPI.COMM_WORLD.Barrier()
    print(f"equal: {len(chosen)} cases on {MPI.COMM_WORLD.Get_size()} ranks")


if __name__ == "__main__":
    main()
