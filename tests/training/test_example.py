# SPDX-License-Identifier: BSD-3-Clause
"""The example trains the same model by gloo, by the MPI library and by mpimcast."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import time
from pathlib import Path
from typing import Any

import perfetto
import processes
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


def command(folder: Path, way: str, *options: str) -> list[str | Path]:
    """Return the command that trains on two ranks."""
    program = (PROGRAM, "--collectives", way, "--folder", folder)
    return [*mpirun(NRANKS), *program, *TINY, *options]


def train(folder: Path, way: str, precision: str, steps: int) -> list[dict[str, Any]]:
    """Train on two ranks; return what is said of each step."""
    options = ("--steps", str(steps), "--save-every", "3", "--precision", precision)
    said = run(
        command(folder, way, *options),
        limit_s=LIMIT_S,
        MPIMCAST_TRANSPORT="udp",
        **torch_variables(),
    )
    assert "\x1b" not in said, "no person watches, so no progress bar moves"
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


def test_timeline(tmp_path: Path) -> None:
    """The timeline shows each rank's reductions where torch's profiler saw them."""
    steps = 2
    said = run(
        command(tmp_path, "mpimcast", "--steps", str(steps), "--timeline"),
        limit_s=LIMIT_S,
        MPIMCAST_TRANSPORT="udp",
        **torch_variables(),
    )
    assert "profiler_st" not in said, said
    entries = perfetto.load(tmp_path / "timeline.json")
    for rank in range(NRANKS):
        mine = [each for each in entries if each["pid"] == rank]
        reductions = perfetto.of_kind(mine, "library")
        calls = [
            each
            for each in perfetto.of_kind(mine, "user_annotation")
            if each["name"].startswith("FSDP::post_backward_reduce")
        ]
        assert len(reductions) == steps * len(calls) > 0
        for reduction, call in zip(reductions[-len(calls) :], calls, strict=True):
            assert perfetto.within(reduction, call)
        assert len(perfetto.of_kind(mine, "operation")) > len(reductions)
        assert perfetto.of_kind(mine, "stage")
        assert perfetto.of_kind(mine, "cpu_op")


def test_ctrl_c(tmp_path: Path) -> None:
    """Ctrl-C at a terminal ends all ranks; the same command goes on.

    The terminal shows its cursor again, and no rank complains.
    """
    endless = command(tmp_path, "mpimcast", "--steps", "100000", "--save-every", "2")
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(ROOT)
        os.environ.update(torch_variables(), MPIMCAST_TRANSPORT="udp")
        os.environ["TEST_FOLDER"] = str(tmp_path)
        os.execv(endless[0], list(map(str, endless)))  # noqa: S606 -- replaces the fork
    said = read_until(terminal, b"step    5")
    os.write(terminal, b"\x03")
    said += read_until(terminal, None)
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) != 0
    assert said.rfind(b"\x1b[?25h") > said.rfind(b"\x1b[?25l") >= 0, said
    assert b"Traceback" not in said, said
    processes.await_end("TEST_FOLDER", str(tmp_path))
    saved = json.loads((tmp_path / "latest.json").read_text())["history"]
    assert saved[-1]["step"] >= 4
    assert train(tmp_path, "mpimcast", "auto", len(saved) + 1)[:-1] == saved


def read_until(terminal: int, mark: bytes | None) -> bytes:
    """Read what a terminal shows until it shows a mark, or until its programs end."""
    said = b""
    deadline_s = time.monotonic() + LIMIT_S
    with contextlib.suppress(OSError):  # the programs have ended
        while mark is None or mark not in said:
            assert time.monotonic() < deadline_s, said
            said += os.read(terminal, 1 << 16)
    return said
