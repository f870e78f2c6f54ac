# SPDX-License-Identifier: BSD-3-Clause
"""torchrun's processes take part in an MPI job, which one of them launches."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import processes
import pytest
from support import BIN, MPICH_BIN, run, run_unchecked, torch_variables

PROGRAM = Path(__file__).with_name("torchrun_rank.py")
NRANKS = 3
LIMIT_S = 100
long = pytest.mark.long
pytestmark = pytest.mark.timeout(2 * LIMIT_S)
LIBRARIES = pytest.mark.parametrize(
    "bin_folder",
    [pytest.param(BIN, id="openmpi"), pytest.param(MPICH_BIN, id="mpich", marks=long)],
)

# As of a process manager that has started torchrun, which its processes inherit.
INHERITED = {
    "PMIX_RANK": "7",
    "PMIX_NAMESPACE": "other",
    "PMIX_SERVER_URI41": "other.0;tcp4://127.0.0.1:1",
    "PMI_RANK": "7",
    "PMI_FD": "99",
    "SLURM_JOB_ID": "7",
    "SLURM_NODELIST": "nowhere",
}
MPI_FIRST = """
from mpi4py import MPI
import mpimcast.torch, torch.distributed as dist
dist.init_process_group("mpimcast")
"""
# It fails in the first of two attempts, after MPI has been initialised.
RESTARTED = """
import os, sys
sys.argv[1:] = ["raise"] * (os.environ["TORCHELASTIC_RESTART_COUNT"] == "0")
import torchrun_rank
torchrun_rank.main()
"""


def torchrun(bin_folder: Path, *options: object) -> list[str | Path]:
    """Return the first words of a command of torchrun's."""
    command = [bin_folder / "python", "-m", "torch.distributed.run", "--standalone"]
    return [*command, "--nproc-per-node", str(NRANKS), *map(str, options)]


@pytest.fixture
def variables(tmp_path: Path) -> Iterator[dict[str, str]]:
    """Yield the variables of a job, of which no process must be left in the end."""
    own = {"TEST_FOLDER": str(tmp_path)}
    yield {**torch_variables(), **INHERITED, **own, "MPIMCAST_TRANSPORT": "udp"}
    processes.await_end("TEST_FOLDER", str(tmp_path))


@LIBRARIES
def test_collectives(bin_folder: Path, variables: dict[str, str]) -> None:
    """The ranks of MPI are all of torch's, and gather by multicast."""
    said = run([*torchrun(bin_folder), PROGRAM], limit_s=LIMIT_S, **variables)
    for rank in range(NRANKS):
        assert f"rank {rank} of {NRANKS}: 2" in said


@long
@LIBRARIES
def test_a_rank_that_raises(bin_folder: Path, variables: dict[str, str]) -> None:
    """The others are told who has left them, and torchrun ends them all."""
    command = [*torchrun(bin_folder), PROGRAM, "raise"]
    status, said = run_unchecked(command, limit_s=LIMIT_S, **variables)
    assert status == 1, said
    assert "ZeroDivisionError: on purpose" in said
    assert "of 3: " not in said


@long
@LIBRARIES
def test_restart(bin_folder: Path, tmp_path: Path, variables: dict[str, str]) -> None:
    """The ranks are started anew, and they launch another job."""
    program = tmp_path / "restarted.py"
    program.write_text(RESTARTED)
    variables["PYTHONPATH"] += f":{PROGRAM.parent}"
    command = [*torchrun(bin_folder, "--max-restarts", 1), program]
    said = run(command, limit_s=LIMIT_S, **variables)
    assert "ZeroDivisionError: on purpose" in said
    assert said.count("of 3: ") == NRANKS


@long
def test_mpi_first(tmp_path: Path) -> None:
    """A program that has initialised MPI too early is told what to import first."""
    program = tmp_path / "first.py"
    program.write_text(MPI_FIRST)
    status, said = run_unchecked(
        [*torchrun(BIN), program], limit_s=LIMIT_S, **torch_variables()
    )
    assert status == 1, said
    assert "import mpimcast.torch before mpi4py.MPI" in said
