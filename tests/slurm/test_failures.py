# SPDX-License-Identifier: BSD-3-Clause
"""A failing job ends within its limit, with its exit code, and names the node."""

from __future__ import annotations

from pathlib import Path

import pytest
from batch import Batch
from cluster import Slurm
from support import BIN, MPICH_BIN

pytestmark = pytest.mark.timeout(200)

LIMIT_S = 60
OPENMPI, MPICH = BIN / "python", MPICH_BIN / "python"
SMALL = {
    "NODES": "all",
    "SIZES": "64K",
    "ITERATIONS": "2",
    "DOCTOR": "off",
    "MPI_TYPE": "pmi2",
}
# Without a list, the topology's order would run the batch script on another node.
TWO = ["--nodes=2", "--nodelist=host0,host1"]

# Replaces a benchmark's rank on host1; the first argument is the rank's Python.
FAULTY = """#!/bin/sh
case "$SLURMD_NODENAME $*" in
"host1 "*" mpimcast bench Allgather "*) {what} ;;
esac
exec "$@"
"""
RAISE = """exec "$1" -m mpi4py -c 'from mpi4py import MPI; raise RuntimeError("so")'"""
HANG = "exec sleep 600"


def faulty(folder: Path, what: str) -> str:
    """Return a WRAP that makes the rank on host1 misbehave."""
    path = folder / "faulty.sh"
    path.write_text(FAULTY.format(what=what))
    return f"sh {path}"


def once(path: Path) -> str:
    """Return a shell command that hangs the first time, and does nothing later."""
    return f"[ -e {path} ] || {{ touch {path}; {HANG}; }}"


def bench(slurm: Slurm, folder: Path, python: Path = MPICH, **changes: str) -> Batch:
    """Submit a small bench.sbatch on host0 and host1."""
    settings = {**SMALL, **changes}
    return Batch(slurm, "bench.sbatch", folder, python, options=TWO, settings=settings)


def begun(slurm: Slurm, folder: Path) -> Batch:
    """Submit a job whose second step hangs the first time; wait until it hangs."""
    path = folder / "once"
    wrap = faulty(folder, once(path))
    batch = bench(slurm, folder, COLLECTIVES="Bcast Allgather", WRAP=wrap)
    batch.wait_until(path.exists, LIMIT_S)
    return batch


def collectives(batch: Batch) -> list[str]:
    """Return the collectives of the steps that are done."""
    return [each["step"]["collective"] for each in batch.steps]


def test_wrong_mpi_type(machine: Slurm, tmp_path: Path) -> None:
    """A launcher that starts each rank alone is found before anything is measured."""
    batch = bench(machine, tmp_path, OPENMPI)
    assert batch.wait(LIMIT_S) == "FAILED"
    assert batch.exit_code == 4
    assert "are not one MPI world" in batch.output
    assert "srun --mpi=pmix" in batch.output


def test_folder_that_nodes_do_not_share(machine: Slurm, tmp_path: Path) -> None:
    """Nodes that do not share the results' folder are named."""
    results = "/dev/shm/results"  # noqa: S108 -- each node's own
    batch = bench(machine, tmp_path, RESULTS=results)
    assert batch.wait(LIMIT_S) == "FAILED"
    assert machine.hosts["host0"].run("cat", f"{results}/exit_code") == "4\n"
    assert "host1 does not share the folder" in batch.output
    assert "sbatch -x host1 " in batch.output


def test_folder_that_cannot_be_made(machine: Slurm, tmp_path: Path) -> None:
    """A job that cannot make its results' folder names the node."""
    (tmp_path / "file").touch()
    batch = bench(machine, tmp_path, RESULTS=str(tmp_path / "file/results"))
    assert batch.wait(LIMIT_S) == "FAILED"
    assert "cannot be written on host0" in batch.output


def test_setting_that_is_wrong(machine: Slurm, tmp_path: Path) -> None:
    """A job whose NODES asks for more nodes than it has fails with exit code 2."""
    batch = bench(machine, tmp_path, NODES="2 8")
    assert batch.wait(LIMIT_S) == "FAILED"
    assert batch.exit_code == 2
    assert "NODES has 8, but the job has 2 nodes" in batch.output


@pytest.mark.parametrize(
    ("what", "words"),
    [
        (RAISE, "RuntimeError: so"),
        pytest.param(HANG, "it exceeded its limit of 8 s", marks=pytest.mark.long),
    ],
    ids=["raises", "hangs"],
)
def test_step_that_fails(machine: Slurm, tmp_path: Path, what: str, words: str) -> None:
    """A failing step ends no other step, and the node that began is named."""
    batch = bench(machine, tmp_path, STEP_LIMIT="8", WRAP=faulty(tmp_path, what))
    assert batch.wait(LIMIT_S) == "FAILED", batch.output
    assert batch.exit_code == 1
    assert words in batch.output
    assert what is HANG or "its limit" not in batch.output
    assert "host1" in batch.output.partition("Allgather failed")[2]
    assert collectives(batch) == ["Bcast"]


@pytest.mark.long
def test_repeated(machine: Slurm, tmp_path: Path) -> None:
    """Another job in the same folder runs only the steps that are not done."""
    batch = bench(machine, tmp_path, WRAP=faulty(tmp_path, RAISE))
    assert batch.wait(LIMIT_S) == "FAILED", batch.output
    again = bench(machine, tmp_path)
    assert again.wait(LIMIT_S) == "COMPLETED", again.output
    assert collectives(again) == ["Bcast", "Allgather"]


@pytest.mark.parametrize(
    ("how", "state"),
    [
        (["scancel"], "CANCELLED"),
        (["scancel", "--batch", "--signal=TERM"], "FAILED"),
    ],
    ids=["scancel", "before the time limit"],
)
def test_ended(machine: Slurm, tmp_path: Path, how: list[str], state: str) -> None:
    """A job that is ended keeps and reports its results, and says how to continue."""
    batch = bench(
        machine, tmp_path, COLLECTIVES="Bcast Allgather", WRAP=faulty(tmp_path, HANG)
    )
    batch.wait_until(lambda: "Bcast done" in batch.output, LIMIT_S)
    machine.run(*how, batch.number)
    assert batch.wait(LIMIT_S) == state
    assert batch.exit_code == 143
    assert collectives(batch) == ["Bcast"]
    assert f"RESULTS={batch.results} sbatch" in batch.output
    assert (batch.results / "report.html").exists()


def test_requeued(machine: Slurm, tmp_path: Path) -> None:
    """A requeued job continues where it stopped."""
    batch = begun(machine, tmp_path)
    machine.run("scontrol", "requeue", batch.number)
    batch.wait_until(lambda: batch.state == "PENDING", LIMIT_S)
    machine.run("scontrol", "update", f"jobid={batch.number}", "StartTime=now")
    assert batch.wait(LIMIT_S) == "COMPLETED", batch.output
    assert batch.exit_code == 0
    assert "start 2" in batch.output
    assert batch.output.count("Bcast done") == 1
    assert collectives(batch) == ["Bcast", "Allgather"]


@pytest.mark.long
def test_node_fails(network: Slurm, tmp_path: Path) -> None:
    """A node that fails is named, and the job continues once the node is back."""
    batch = begun(network, tmp_path)
    network.hosts["host1"].end_processes()
    batch.wait_until(lambda: batch.state == "PENDING", LIMIT_S)
    assert batch.exit_code == 143
    assert "host1 is down" in batch.output
    assert "sbatch -x host1 " in batch.output
    network.start("host1")
    network.wait_idle()
    network.run("srun", *TWO, "true")
    # A node that comes back ends the job's old run, and a run begun in the same second.
    later = "StartTime=now+5"
    network.run("scontrol", "update", f"jobid={batch.number}", later)
    assert batch.wait(LIMIT_S) == "COMPLETED", batch.output
    assert len(batch.steps) == 2
