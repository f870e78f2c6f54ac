# SPDX-License-Identifier: BSD-3-Clause
"""A batch job that fails ends in time, with the right exit code, and says why."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from batch import Batch
from cluster import Slurm
from support import BIN, MPICH_BIN

pytestmark = pytest.mark.timeout(200)

LIMIT_S = 60
OPENMPI, MPICH = BIN / "python", MPICH_BIN / "python"
# Settings of bench.sbatch for a short job.
SMALL = {
    "NODES": "all",
    "SIZES": "64K",
    "ITERATIONS": "2",
    "DOCTOR": "off",
    "MPI_TYPE": "pmi2",
}
# Options of sbatch for a job of two nodes. Without a list of nodes, the batch script
# would run on another node, since the topology has the nodes in another order.
TWO_NODES = ["--nodes=2", "--nodelist=host0,host1"]

# A script that runs a rank: its arguments are the rank's command, Python first. On
# host1 it runs another script if the rank is to measure an Allgather.
FAULTY = """#!/bin/sh
case "$SLURMD_NODENAME $*" in
"host1 "*" mpimcast bench Allgather "*) {script} ;;
esac
exec "$@"
"""
RAISE = """exec "$1" -m mpi4py -c 'from mpi4py import MPI; raise RuntimeError("so")'"""
HANG = "exec sleep 600"


def faulty(folder: Path, script: str) -> str:
    """Return a value of WRAP that makes the rank on host1 run a script instead."""
    path = folder / "faulty.sh"
    path.write_text(FAULTY.format(script=script))
    return f"sh {path}"


def hang_once(path: Path) -> str:
    """Return a script that makes a file and hangs, unless the file exists already."""
    return f"[ -e {path} ] || {{ touch {path}; {HANG}; }}"


def submit(slurm: Slurm, folder: Path, python: Path = MPICH, **changes: str) -> Batch:
    """Submit bench.sbatch on host0 and host1, with changes to the settings SMALL."""
    settings = {**SMALL, **changes}
    return Batch(
        slurm, "bench.sbatch", folder, python, options=TWO_NODES, settings=settings
    )


def submit_and_hang(slurm: Slurm, folder: Path) -> Batch:
    """Submit a job whose second step hangs at first, and wait until it hangs."""
    path = folder / "hung"
    wrap = faulty(folder, hang_once(path))
    batch = submit(slurm, folder, COLLECTIVES="Bcast Allgather", WRAP=wrap)
    batch.wait_until(path.exists, LIMIT_S)
    return batch


def collectives(batch: Batch) -> list[str]:
    """Return the collectives of the steps that are done."""
    return [each["step"]["collective"] for each in batch.steps]


def test_wrong_mpi_type(machine: Slurm, tmp_path: Path) -> None:
    """The job finds that srun --mpi=pmi2 starts each rank of Open MPI alone.

    It says so before it measures anything, and names the option that works.
    """
    batch = submit(machine, tmp_path, OPENMPI)
    assert batch.wait(LIMIT_S) == "FAILED"
    assert batch.exit_code == 4
    assert "are not one MPI world" in batch.output
    assert "srun --mpi=pmix" in batch.output


def test_folder_that_nodes_do_not_share(machine: Slurm, tmp_path: Path) -> None:
    """If the nodes share no folder for results, the job names the node without it."""
    results = "/dev/shm/results"  # noqa: S108 -- each node's own
    batch = submit(machine, tmp_path, RESULTS=results)
    assert batch.wait(LIMIT_S) == "FAILED"
    assert machine.hosts["host0"].run("cat", f"{results}/exit_code") == "4\n"
    assert "host1 does not share the folder" in batch.output
    assert "sbatch -x host1 " in batch.output


def test_folder_that_cannot_be_made(machine: Slurm, tmp_path: Path) -> None:
    """If the folder for results cannot be made, the job names the node."""
    (tmp_path / "file").touch()
    batch = submit(machine, tmp_path, RESULTS=str(tmp_path / "file/results"))
    assert batch.wait(LIMIT_S) == "FAILED"
    assert "cannot be written on host0" in batch.output


def test_setting_that_is_wrong(machine: Slurm, tmp_path: Path) -> None:
    """If NODES asks for more nodes than the job has, its exit code is 2."""
    batch = submit(machine, tmp_path, NODES="2 8")
    assert batch.wait(LIMIT_S) == "FAILED"
    assert batch.exit_code == 2
    assert "NODES has 8, but the job has 2 nodes" in batch.output


@pytest.mark.parametrize(
    ("script", "words"),
    [
        (RAISE, "RuntimeError: so"),
        pytest.param(HANG, "it exceeded its limit of 8 s", marks=pytest.mark.long),
    ],
    ids=["raises", "hangs"],
)
def test_step_that_fails(
    machine: Slurm, tmp_path: Path, script: str, words: str
) -> None:
    """If a step fails or hangs, the job names the node, and runs the other steps."""
    batch = submit(machine, tmp_path, STEP_LIMIT="8", WRAP=faulty(tmp_path, script))
    assert batch.wait(LIMIT_S) == "FAILED", batch.output
    assert batch.exit_code == 1
    assert words in batch.output
    assert script is HANG or "its limit" not in batch.output
    assert "host1" in batch.output.partition("Allgather failed")[2]
    assert collectives(batch) == ["Bcast"]


@pytest.mark.long
def test_a_second_job_continues(machine: Slurm, tmp_path: Path) -> None:
    """A second job in the same folder runs only the steps that are not done."""
    batch = submit(machine, tmp_path, WRAP=faulty(tmp_path, RAISE))
    assert batch.wait(LIMIT_S) == "FAILED", batch.output
    again = submit(machine, tmp_path)
    assert again.wait(LIMIT_S) == "COMPLETED", again.output
    assert collectives(again) == ["Bcast", "Allgather"]


@pytest.mark.parametrize(
    ("command", "state"),
    [
        (["scancel"], "CANCELLED"),
        (["scancel", "--batch", "--signal=TERM"], "FAILED"),
    ],
    ids=["scancel", "before the time limit"],
)
def test_a_job_that_is_ended(
    machine: Slurm, tmp_path: Path, command: list[str], state: str
) -> None:
    """A job that Slurm ends early reports its results, and prints how to continue.

    Slurm sends it SIGTERM when a user cancels it, or when its time limit is near.
    """
    batch = submit(
        machine, tmp_path, COLLECTIVES="Bcast Allgather", WRAP=faulty(tmp_path, HANG)
    )
    batch.wait_until(lambda: "Bcast done" in batch.output, LIMIT_S)
    machine.run(*command, batch.number)
    assert batch.wait(LIMIT_S) == state
    assert batch.exit_code == 128 + signal.SIGTERM
    assert collectives(batch) == ["Bcast"]
    assert f"RESULTS={batch.results} sbatch" in batch.output
    assert (batch.results / "report.html").exists()


def test_requeued(machine: Slurm, tmp_path: Path) -> None:
    """A requeued job runs only the steps that are not done."""
    batch = submit_and_hang(machine, tmp_path)
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
    """If a node fails, the job names it, and continues once the node is back."""
    batch = submit_and_hang(network, tmp_path)
    network.hosts["host1"].end_processes()
    batch.wait_until(lambda: batch.state == "PENDING", LIMIT_S)
    assert batch.exit_code == 128 + signal.SIGTERM
    assert "host1 is down" in batch.output
    assert "sbatch -x host1 " in batch.output
    network.start("host1")
    network.wait_idle()
    network.run("srun", *TWO_NODES, "true")
    # A node that comes back ends the rest of the job's first run. It would also end a
    # second run that began within the same second.
    later = "StartTime=now+5"
    network.run("scontrol", "update", f"jobid={batch.number}", later)
    assert batch.wait(LIMIT_S) == "COMPLETED", batch.output
    assert len(batch.steps) == 2
