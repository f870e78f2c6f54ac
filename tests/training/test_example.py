# SPDX-License-Identifier: BSD-3-Clause
"""The example trains the same model by gloo, by the MPI library and by mpimcast."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support import ROOT, mpirun, run, torch_variables

PROGRAM = ROOT / "slurm/train.py"
NRANKS = 2
STEPS = 6
TINY = (
    *("--layers", "2", "--width", "24", "--heads", "2", "--context", "16"),
    *("--rate", "0.01"),
)
# Losses may differ by this share, since summands are added in another order. Parameters
# that differ in their last bit are now and then rounded to other 16-bit numbers.
BOUNDS = {"fp32": 1e-5, "bf16": 2e-3}
LIMIT_S = 150
pytestmark = pytest.mark.timeout(4 * LIMIT_S)


def train(folder: Path, way: str, precision: str, steps: int) -> list[dict[str, Any]]:
    """Train on two ranks; return what is said of each step."""
    run(
        [
            *mpirun(NRANKS),
            *(PROGRAM, "--collectives", way, "--folder", folder, *TINY),
            *("--steps", str(steps), "--save-every", "3", "--precision", precision),
        ],
        limit_s=LIMIT_S,
        MPIMCAST_TRANSPORT="udp",
        **torch_variables(),
    )
    history: list[dict[str, Any]] = json.loads((folder / "history.json").read_text())
    assert [each["step"] for each in history] == list(range(1, steps + 1))
    return history


@pytest.mark.parametrize(
    ("way", "precision"),
    [
        ("mpimcast", "bf16"),
        pytest.param("mpimcast", "fp32", marks=pytest.mark.long),
        pytest.param("mpi", "bf16", marks=pytest.mark.long),
    ],
)
def test_losses(tmp_path: Path, way: str, precision: str) -> None:
    """Losses equal those of gloo, even if a job stops and another resumes it."""
    truth = train(tmp_path / "gloo", "gloo", precision, STEPS)
    train(tmp_path / way, way, precision, STEPS // 2)
    found = train(tmp_path / way, way, precision, STEPS)
    expected = [each["loss"] for each in truth]
    got = [each["loss"] for each in found]
    assert got == pytest.approx(expected, rel=BOUNDS[precision])
    assert expected[-1] < 0.95 * expected[0], "it learns nothing"
    assert all(0 < each["exposed_s"] < each["seconds"] for each in found)
    assert all(each["sent_bytes"] > 0 for each in found)
    assert (tmp_path / way / "loss.png").stat().st_size > 5000
