# SPDX-License-Identifier: BSD-3-Clause
"""Training with PyTorch over mpimcast: it computes what training over gloo does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support import (
    BIN,
    MPICH_BIN,
    ROOT,
    mpirun,
    run,
    run_unchecked,
    skip_or_fail,
    torch_variables,
)

HERE = Path(__file__).parent
LIBRARIES = {"openmpi": BIN, "mpich": MPICH_BIN}
LIMIT_S = 240
BY_MULTICAST = {"MPIMCAST_TRANSPORT": "udp"}
LOSSY = {**BY_MULTICAST, "MPIMCAST_FAULT": "loss=0.05"}
long = pytest.mark.long
pytestmark = pytest.mark.timeout(LIMIT_S + 30)


@pytest.fixture(scope="session")
def torch() -> dict[str, str]:
    """Return the variables by which Python finds torch, or skip the test."""
    return torch_variables()


@pytest.mark.parametrize(
    ("nranks", "library", "settings", "chosen"),
    [
        pytest.param(2, "openmpi", BY_MULTICAST, (), id="2", marks=long),
        pytest.param(3, "openmpi", LOSSY, ("plain", "halves accumulated"), id="lossy"),
        pytest.param(4, "openmpi", {}, ("mixed", "hybrid"), id="shared memory"),
        pytest.param(3, "openmpi", BY_MULTICAST, (), id="3", marks=long),
        pytest.param(4, "openmpi", LOSSY, (), id="4 lossy", marks=long),
        pytest.param(3, "mpich", BY_MULTICAST, (), id="mpich", marks=long),
    ],
)
def test_equal(
    torch: dict[str, str],
    nranks: int,
    library: str,
    settings: dict[str, str],
    chosen: tuple[str, ...],
) -> None:
    """Losses, gradients and parameters equal those of gloo and of one process.

    The cases are in cases.py: parameters that do not divide evenly, and frozen ones,
    mixed precision, accumulated gradients, with and without prefetching and resharding.
    """
    launcher = mpirun(nranks, bin_folder=_installed(library))
    said = run(
        [*launcher, HERE / "equal_rank.py", *chosen],
        limit_s=LIMIT_S,
        **{**torch, **settings},
    )
    assert said.count("equal: ") == nranks


@pytest.mark.parametrize(
    ("nranks", "library"),
    [
        (2, "openmpi"),
        pytest.param(3, "openmpi", marks=long),
        pytest.param(4, "mpich", marks=long),
    ],
)
def test_backend(torch: dict[str, str], nranks: int, library: str) -> None:
    """The process group does what torch says; DDP and FSDP1 train as one process."""
    launcher = mpirun(nranks, bin_folder=_installed(library))
    program = HERE / "backend_rank.py"
    said = run([*launcher, program], limit_s=LIMIT_S, **torch, **BY_MULTICAST)
    assert said.count("right") == nranks


@pytest.mark.parametrize(
    "place",
    [
        "backward",
        pytest.param("before", marks=long),
        pytest.param("forward", marks=long),
        pytest.param("after", marks=long),
    ],
)
def test_a_rank_that_raises(torch: dict[str, str], place: str) -> None:
    """The job ends, and the other ranks say which rank has left them."""
    program = HERE / "raising_rank.py"
    status, said = run_unchecked(
        [*mpirun(3), program, place], limit_s=LIMIT_S, **torch, **BY_MULTICAST
    )
    assert status not in {0, 124}, said
    assert f"ZeroDivisionError: on purpose, {place}" in said
    assert "trained" not in said
    left = [line for line in said.splitlines() if "RankLeft: " in line]
    assert left, said
    assert all("rank 1 left" in line for line in left), said


@pytest.mark.parametrize("nranks", [1, 2])
def test_guide(torch: dict[str, str], nranks: int, tmp_path: Path) -> None:
    """The guide's example trains, and multicasts where there is more than one rank."""
    guide = (ROOT / "mpimcast/README.md").read_text(encoding="utf-8")
    section = guide[guide.index("\n## PyTorch\n") :]
    example = re.findall(r"```py\n(.*?)```", section, re.DOTALL)[0]
    program = tmp_path / "example.py"
    program.write_text(example)
    said = run([*mpirun(nranks), program], limit_s=LIMIT_S, **torch, **BY_MULTICAST)
    counts = [int(each) for each in said.split()]
    assert counts == [0] if nranks == 1 else min(counts) >= 8, said


# MPI's launcher has not started this process, and neither has torchrun.
STARTED_ALONE = """
import torch.distributed as dist, mpimcast.torch
dist.init_process_group("mpimcast", store=dist.HashStore(), rank=0, world_size=2)
"""
WITHOUT_SHARDS = """
import torch, mpimcast.torch
mpimcast.torch.apply(torch.nn.Linear(2, 2))
"""
WITHOUT_THREADS = """
import mpi4py
mpi4py.rc.thread_level = "single"
import mpimcast.torch
mpimcast.torch.ProcessGroup
from mpi4py import MPI
from mpimcast.torch.reducer import Reducer
Reducer(MPI.COMM_WORLD)
"""


@pytest.mark.parametrize(
    ("program", "words"),
    [
        (STARTED_ALONE, ("torch has 2 ranks, but MPI has 1", "mpirun -n 2 python")),
        (WITHOUT_SHARDS, ("no module of this model was sharded by FSDP2",)),
        (WITHOUT_THREADS, ("needs MPI.THREAD_MULTIPLE, but MPI was",)),
    ],
)
def test_refusals(torch: dict[str, str], program: str, words: tuple[str, ...]) -> None:
    """What cannot work is refused at once, in words that say what to do."""
    status, said = run_unchecked([BIN / "python", "-c", program], limit_s=120, **torch)
    assert status == 1, said
    for each in words:
        assert each in said


def _installed(library: str) -> Path:
    folder = LIBRARIES[library]
    if not (folder / "python").exists():
        skip_or_fail(f"{library} is not installed")
    return folder
