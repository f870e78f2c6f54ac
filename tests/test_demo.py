# SPDX-License-Identifier: BSD-3-Clause
"""The main job: the one that `make demo` runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support import mpirun, run

NRANKS = 4


@pytest.mark.timeout(90)
def test_demo(tmp_path: Path) -> None:
    """Within a minute the demo repairs losses and gathers the model without an error.

    A rank sends at least its block, and less than half as much as a rank of the MPI
    library.
    """
    path = tmp_path / "demo.json"
    run([*mpirun(NRANKS), "-m", "mpimcast", "demo", "--json", path], limit_s=60)
    result = json.loads(path.read_text())
    ours, theirs = result["mpimcast"], result["mpi"]
    assert result["different_bytes"] == 0
    assert ours["chunks_lost"] > 0
    sent = ours["payload_bytes_sent_per_rank"]
    block_bytes = result["model_bytes"] / NRANKS
    assert block_bytes <= sent < theirs["payload_bytes_sent_per_rank"] / 2
    shared_bytes = result["shared"]["result_bytes_per_node"]
    assert NRANKS * shared_bytes == ours["result_bytes_per_node"]
    assert shared_bytes < result["model_bytes"]
