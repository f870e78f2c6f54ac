# SPDX-License-Identifier: BSD-3-Clause
"""The doctor's batch job on many Slurm nodes, all on this machine."""

from __future__ import annotations

import json
from pathlib import Path

import cluster
import pytest
from batch import Batch
from support import BIN

OPENMPI = BIN / "python"


@pytest.mark.timeout(580)
@pytest.mark.usefixtures("able")
@pytest.mark.parametrize(
    ("nnodes", "limit_s"),
    [(16, 120), pytest.param(64, 500, marks=pytest.mark.long)],
    ids=["16", "64"],
)
def test_many_nodes(tmp_path: Path, nnodes: int, limit_s: float) -> None:
    """The doctor reports on every node in time, whatever it finds.

    With so many nodes on few processors, it may find slow nodes.
    """
    with cluster.one_network(nnodes) as (head, hosts):
        slurm = cluster.Slurm(head, hosts)
        batch = Batch(
            *(slurm, "doctor.sbatch", tmp_path, OPENMPI),
            options=[f"--nodes={nnodes}"],
            settings={"CHECK_LIMIT": str(limit_s), "MPI_TYPE": "pmix"},
        )
        batch.wait(limit_s)
    assert batch.exit_code in (0, 3), batch.output
    found = json.loads((batch.results / "doctor.json").read_text())
    assert found["nranks"] == nnodes
    names = {node["name"] for node in found["nodes"]}
    assert names == {f"host{number}" for number in range(nnodes)}
