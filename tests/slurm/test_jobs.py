# SPDX-License-Identifier: BSD-3-Clause
"""On healthy nodes, each batch job completes, and its results are right.

The jobs run in several places. A place is a Slurm's fixture, an MPI library's Python,
and a shape: the number of nodes, and of ranks on each.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from batch import Batch
from cluster import Slurm
from safetensors.numpy import save_file
from support import BIN, MPICH_BIN, ROOT, torch_variables

pytestmark = pytest.mark.timeout(200)

LIMIT_S = 90
OPENMPI, MPICH = BIN / "python", MPICH_BIN / "python"
# For each MPI library's Python, the value that the jobs pass to ``srun --mpi``.
LAUNCHERS = {OPENMPI: "pmix", MPICH: "pmi2"}
LONG = pytest.mark.long

PLACES = [
    pytest.param("network", OPENMPI, (4, 1), id="network-openmpi-4x1"),
    pytest.param("machine", MPICH, (2, 2), id="machine-mpich-2x2"),
    pytest.param("network", MPICH, (4, 1), id="network-mpich-4x1", marks=LONG),
    pytest.param("network", OPENMPI, (2, 2), id="network-openmpi-2x2", marks=LONG),
    pytest.param("network", MPICH, (2, 2), id="network-mpich-2x2", marks=LONG),
    pytest.param("machine", OPENMPI, (4, 1), id="machine-openmpi-4x1", marks=LONG),
    pytest.param("machine", MPICH, (4, 1), id="machine-mpich-4x1", marks=LONG),
    pytest.param("machine", OPENMPI, (2, 2), id="machine-openmpi-2x2", marks=LONG),
]
# For tests that use only the second place unless --long is given.
FIRST_IS_LONG = [
    pytest.param(*PLACES[0].values, id=PLACES[0].id, marks=LONG),
    *PLACES[1:],
]


@pytest.fixture
def submit(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., Batch]:
    """Return a function that submits a job in a place."""

    def submit_one(
        place: str, script: str, python: Path, shape: tuple[int, int], **settings: str
    ) -> Batch:
        nodes, ranks = shape
        options = f"--nodes={nodes}", f"--ntasks-per-node={ranks}"
        slurm = request.getfixturevalue(place)
        return Batch(
            slurm, script, tmp_path, python, options=options, settings=settings
        )

    return submit_one


# What carries the data: the nodes on one machine share its memory.
PATHS = {"network": "udp", "machine": "shm"}


@pytest.mark.parametrize(("place", "python", "shape"), PLACES)
def test_bench(
    submit: Callable[..., Batch], place: str, python: Path, shape: tuple[int, int]
) -> None:
    """The benchmark job finds the launcher, measures on all nodes, and reports."""
    nodes, ranks = shape
    batch = submit(
        *(place, "bench.sbatch", python, shape),
        NODES="all",
        SIZES="64K,128K",
        ITERATIONS="2",
        # All except the bandwidth check: nodes that share processors differ in it.
        CHECKS="nodes multicast control mtu",
    )
    assert batch.wait(LIMIT_S) == "COMPLETED", batch.output
    assert batch.exit_code == 0
    assert f"{LAUNCHERS[python]} starts all ranks" in batch.output
    assert (
        json.loads((batch.results / "doctor.json").read_text())["verdict"] == "usable"
    )
    for measured, collective in zip(batch.steps, ("Allgather", "Bcast"), strict=True):
        step = measured["step"]
        assert step["collective"] == collective
        assert (step["nodes"], step["ranks_per_node"]) == shape
        assert measured["ranks"] == nodes * ranks
        order = (batch.results / "order.txt").read_text().split()
        assert measured["hosts"] == [name for name in order for _ in range(ranks)]
        # Ranks are in the order of the switches; the first has the last two nodes.
        assert nodes == 2 or order == ["host2", "host3", "host0", "host1"]
        assert [row["block_bytes"] for row in measured["measured"]] == [65536, 131072]
        for row in measured["measured"]:
            assert row["path"] == PATHS[place], row["reason"]
            assert row["mpimcast"]["wrong_bytes"] == row["mpi"]["wrong_bytes"] == 0
    assert (batch.results / "report.html").stat().st_size > 0
    assert list(batch.results.glob("*.png"))


@LONG
@pytest.mark.parametrize("python", [OPENMPI, MPICH], ids=["openmpi", "mpich"])
def test_mpirun(submit: Callable[..., Batch], python: Path) -> None:
    """With MPI_TYPE=mpirun the MPI library's own launcher starts the ranks."""
    batch = submit(
        *("network", "bench.sbatch", python, (4, 1)),
        NODES="2 4",
        SIZES="64K",
        ITERATIONS="2",
        COLLECTIVES="Bcast",
        DOCTOR="off",
        MPI_TYPE="mpirun",
    )
    assert batch.wait(LIMIT_S) == "COMPLETED", batch.output
    # The launcher may reorder the nodes of the last step.
    assert [set(each["hosts"]) for each in batch.steps] == [
        {"host2", "host3"},
        {"host0", "host1", "host2", "host3"},
    ]


@pytest.mark.parametrize(
    ("script", "nodes", "fits"),
    [
        ("bench.sbatch", 4, True),
        ("doctor.sbatch", 4, True),
        ("fsdp.sbatch", 4, True),
        ("bench.sbatch", 5, False),
    ],
)
def test_slurm_takes_the_scripts(
    machine: Slurm, script: str, nodes: int, fits: bool
) -> None:
    """Slurm accepts the options in the scripts, but refuses more nodes than it has."""
    path = str(ROOT / "slurm" / script)
    command = "sbatch", "--test-only", f"--nodes={nodes}", path
    with (
        contextlib.nullcontext() if fits else pytest.raises(RuntimeError, match="odes")
    ):
        machine.run(*command)


@pytest.mark.parametrize(("place", "python", "shape"), FIRST_IS_LONG)
def test_fsdp(
    submit: Callable[..., Batch],
    tmp_path: Path,
    place: str,
    python: Path,
    shape: tuple[int, int],
) -> None:
    """The FSDP job gathers a model rightly, though its file's name has a blank."""
    path = tmp_path / "two layers.safetensors"
    rng = np.random.default_rng(7)
    save_file({name: rng.random(100_003, np.float32) for name in "ab"}, path)
    # TRANSPORT=auto would take nodes that share a machine's network for one host.
    settings = {"TRANSPORTS": "udp", "DOCTOR": "off", "NODES": "all"}
    batch = submit(place, "fsdp.sbatch", python, shape, FILE=path.name, **settings)
    assert batch.wait(LIMIT_S) == "COMPLETED", batch.output
    (measured,) = batch.steps
    assert measured["ranks"] == shape[0] * shape[1]
    assert measured["different_bytes"] == 0
    assert measured["model_bytes"] == 2 * 4 * 100_003
    assert "UDP multicast" in measured["path"]
    assert measured["mpimcast"]["chunks_lost"] == 0


@LONG
@pytest.mark.timeout(300)
def test_train(submit: Callable[..., Batch]) -> None:
    """The training job trains, and a second one resumes where it has stopped."""
    tiny = "--layers 2 --width 32 --heads 2 --context 16 --batch 1 --steps"
    for nsteps in (2, 4):
        batch = submit(
            *("network", "train.sbatch", OPENMPI, (2, 1)),
            TRAIN_OPTIONS=f"{tiny} {nsteps}",
            GLOO_SOCKET_IFNAME="eth0",
            DOCTOR="off",
            **torch_variables(),
        )
        assert batch.wait(140) == "COMPLETED", batch.output
        assert f"step    {nsteps}: loss" in batch.output
    assert "resumed after step 2" in batch.output
    history = json.loads((batch.results / "mpimcast/history.json").read_text())
    assert [each["step"] for each in history] == [1, 2, 3, 4]
