# SPDX-License-Identifier: BSD-3-Clause
"""The main job, run as by `make demo`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support import mpirun, run


@pytest.mark.timeout(90)
def test_demo(tmp_path: Path) -> None:
    """Within a minute the demo repairs losses, and sends under half of MPI's bytes."""
    path = tmp_path / "demo.json"
    run([*mpirun(4), "-m", "mpimcast", "demo", "--json", path], limit_s=60)
    result = json.loads(path.read_text())
    ours, theirs = result["mpimcast"], result["mpi"]
    assert result["different_bytes"] == 0
    assert ours["chunks_lost"] > 0
    sent = ours["payload_bytes_sent_per_rank"]
    assert result["model_bytes"] / 4 <= sent < theirs["payload_bytes_sent_per_rank"] / 2
