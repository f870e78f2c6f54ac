# SPDX-License-Identifier: BSD-3-Clause
"""``make demo-cluster`` at a small size: what it measures, prints, and needs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support import ROOT

from bench import demo
from bench.demo import Plan, Row
from bench.jobs.contenders import CONTENDERS

NHOSTS, BLOCK_BYTES, ITERATIONS = 4, 256 << 10, 2
PLAN = Plan(
    NHOSTS,
    BLOCK_BYTES,
    ITERATIONS,
    [CONTENDERS["mpimcast"], CONTENDERS["openmpi-tuned"]],
)

# The most bytes that frames may have, as a multiple of the blocks' bytes. Headers take
# 58 bytes of 1514; control messages and barriers take less.
OVERHEAD = 1.1


@pytest.mark.usefixtures("able")
@pytest.mark.timeout(90)
def test_bytes_over_the_trunk() -> None:
    """By multicast a block crosses the trunk once; by a ring, as often as the ring."""
    rows = {(row.order, row.contender): row for row in demo.measure(PLAN)}
    blocks = {name: row.trunk_bytes / BLOCK_BYTES for name, row in rows.items()}
    # In either order, half of the blocks cross the trunk each way.
    for order in ("block", "interleaved"):
        assert NHOSTS / 2 < blocks[order, "mpimcast"] < OVERHEAD * NHOSTS / 2
    # All blocks but one pass each link of the ring. In block order, one link crosses
    # the trunk each way; in interleaved order, half of the links do.
    crossings = NHOSTS - 1
    assert crossings < blocks["block", "openmpi-tuned"] < OVERHEAD * crossings
    crossings *= NHOSTS // 2
    assert crossings < blocks["interleaved", "openmpi-tuned"] < OVERHEAD * crossings
    assert all(row.seconds > 0 and not row.wrong_bytes for row in rows.values())


def test_table() -> None:
    """For each order, the table compares every contender with the first one."""
    rows = [
        Row("block", "mpimcast", 2.0, 4_000_000, 0),
        Row("block", "openmpi", 5.0, 6_000_000, 0),
        Row("interleaved", "mpimcast", 2.0, 4_000_000, 0),
        Row("interleaved", "openmpi", 3.0, 8_000_000, 0),
    ]
    _, block, first, second, interleaved, _, last = demo.table(rows)
    assert "in the order" in block
    assert first.split()[-3:] == ["2.00", "4.0", 10 * "#"]
    assert second.split()[-7:] == ["5.00", "2.5", "x", "6.0", "1.5", "x", 15 * "#"]
    assert "alternate" in interleaved
    assert last.split()[-7:] == ["3.00", "1.5", "x", "8.0", "2.0", "x", 20 * "#"]


@pytest.mark.usefixtures("able")
@pytest.mark.timeout(60)
def test_interrupted() -> None:
    """Ctrl-C soon ends the demo and every process of its hosts."""
    command = [sys.executable, "-m", "bench.demo", "--hosts", "2", "--block", "32M"]
    with subprocess.Popen(
        [*command, "--ways", "mpimcast"],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        deadline_s = time.monotonic() + 30
        while not any(map(is_launcher, its_children := children(process.pid))):
            assert time.monotonic() < deadline_s
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=20)
    assert process.returncode == 128 + signal.SIGINT
    assert b"interrupted" in errors
    deadline_s = time.monotonic() + 10
    while any(Path(f"/proc/{pid}").exists() for pid in its_children):
        assert time.monotonic() < deadline_s
        time.sleep(0.05)


def children(pid: int) -> list[int]:
    """Return the children of the demo: one for each of its hosts, and the launcher."""
    path = Path(f"/proc/{pid}/task/{pid}/children")
    return list(map(int, path.read_text().split())) if path.exists() else []


def is_launcher(pid: int) -> bool:
    """Return whether a process starts the ranks."""
    path = Path(f"/proc/{pid}/cmdline")
    return path.exists() and b"/mpirun" in path.read_bytes()


def test_without_root(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without root the demo says in one sentence what it needs."""
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(sys, "argv", ["bench.demo"])
    monkeypatch.setattr(demo.shutil, "which", lambda tool: f"/sbin/{tool}")
    assert demo.main() == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("make demo-cluster: it has to be run as root")


def test_without_tools(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """If a tool is missing, the demo says in one sentence which package has it."""
    monkeypatch.setattr(sys, "argv", ["bench.demo"])
    monkeypatch.setattr(demo.shutil, "which", lambda _: None)
    assert demo.main() == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "apt install iproute2" in line
