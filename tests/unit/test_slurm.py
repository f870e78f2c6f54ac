# SPDX-License-Identifier: BSD-3-Clause
"""The decisions of the batch scripts: the order of nodes, the bad ones, the steps."""

from __future__ import annotations

import json
import os
import random
import shlex
import subprocess
from pathlib import Path

import pytest
from support import ROOT, require_tool

from slurm import nodes, steps
from slurm.nodes import Answer

SCRIPTS = sorted((ROOT / "slurm").glob("*.sbatch"))
BASH = [*SCRIPTS, ROOT / "slurm/common.sh"]


def test_shellcheck() -> None:
    """ShellCheck accepts the scripts."""
    shellcheck = require_tool("shellcheck")
    done = subprocess.run(
        [shellcheck, "--external-sources", *BASH],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_options_of_scripts(script: Path) -> None:
    """The scripts set no options that differ between sites, such as partitions."""
    options = {
        line.split()[1].partition("=")[0]
        for line in script.read_text().splitlines()
        if line.startswith("#SBATCH")
    }
    assert options == {
        *("--job-name", "--nodes", "--ntasks-per-node", "--exclusive", "--time"),
        *("--requeue", "--open-mode", "--signal", "--output"),
    }


# ---- nodes -------------------------------------------------------------------


def test_order(seed: int) -> None:
    """Nodes are ordered by switch, then by number, in whatever order they answer."""
    expected = [
        *("core.leaf2.n9", "core.leaf2.n10", "core.leaf10.n1", "core.leaf10.n2"),
        *("edge.leaf1.n3", "edge.leaf1.n03b"),
    ]
    found = [Answer(each, each.rpartition(".")[2], shares=True) for each in expected]
    random.Random(seed).shuffle(found)
    assert nodes.in_order(found) == [each.rpartition(".")[2] for each in expected]


def test_order_without_topology() -> None:
    """Without a topology, nodes are ordered by name, and numbers in names by value."""
    names = ["b", "a10", "7", "a9"]
    found = [Answer(name, name, shares=True) for name in names]
    assert nodes.in_order(found) == ["7", "a9", "a10", "b"]


def test_answers() -> None:
    """Other lines, such as a prolog's, are not taken for nodes' answers."""
    said = ["Welcome to this cluster", "core.n1 n1 shared", "", "n2 n2 apart", "a b c"]
    assert list(nodes.answers(said)) == [
        Answer("core.n1", "n1", shares=True),
        Answer("n2", "n2", shares=False),
    ]


def test_complaints() -> None:
    """A node is reported if it has not answered, or does not share the job's folder."""
    found = [Answer("n1", "n1", shares=True), Answer("n2", "n2", shares=False)]
    wrong = nodes.complaints(["n1", "n2", "n3"], found)
    assert list(wrong) == ["n2", "n3"]
    assert "does not share" in wrong["n2"]
    assert "no process" in wrong["n3"]


def test_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The command prints the order of nodes, or, if some are bad, those to exclude."""
    hosts, answers = tmp_path / "hosts", tmp_path / "answers"
    hosts.write_text("n1\nn2\n")
    answers.write_text("s2.n1 n1 shared\ns1.n2 n2 shared\n")
    assert nodes.main("check", str(hosts), str(answers)) == 0
    assert capsys.readouterr().out == "n2\nn1\n"
    answers.write_text("s2.n1 n1 shared\n")
    assert nodes.main("check", str(hosts), str(answers)) == 4
    assert "sbatch -x n2 ..." in capsys.readouterr().err


def test_node_of_each_rank() -> None:
    """A step takes the first nodes in order; its ranks fill one node after another."""
    order = ["n3", "n1", "n2"]
    assert nodes.node_of_each_rank(order, 2, 2) == ["n3", "n3", "n1", "n1"]
    with pytest.raises(ValueError, match="3 nodes, the step wants 4"):
        nodes.node_of_each_rank(order, 4, 1)


def test_lost_nodes() -> None:
    """A node is lost if Slurm says that it is down, failing, or not responding (*)."""
    said = ["n1 allocated", "n2 down*", "n3 idle*", "n4 draining", "n5 fail", "noise"]
    assert nodes.lost(said) == {"n2": "down*", "n3": "idle*", "n5": "fail"}


def test_blame() -> None:
    """A step's first error is kept, without the errors of tasks that it ended."""
    said = [
        *("srun: cluster configuration lacks support for cpu binding", "Traceback"),
        *("  File x", "", "RuntimeError: so"),
        "srun: error: n2: task 1: Exited with exit code 1",
        "slurmstepd-n1: error: *** STEP 1.1 ON n1 CANCELLED ***",
    ]
    assert nodes.blame(said) == [
        *("Traceback", "  File x", "RuntimeError: so"),
        "srun: error: n2: task 1: Exited with exit code 1",
    ]


def test_errors(tmp_path: Path) -> None:
    """A step's errors begin with their node's name, in the order in which tasks ended.

    Files of other steps are left out; srun's own messages come last.
    """
    for path, text in (
        ("2x1.err", "srun: error: n2: task 1: Killed\n"),
        ("2x1.n2.err", "Traceback\n  File x\nRuntimeError: so\n"),
        ("2x1.n1.err", "\n"),
        ("2x1.n3.err", "connection lost\n"),
        ("2x11.n4.err", "of another step\n"),
    ):
        (tmp_path / path).write_text(text)
    for second, name in enumerate(("n2", "n1", "n3")):
        os.utime(tmp_path / f"2x1.{name}.err", (second, second))
    assert list(nodes.errors(tmp_path / "2x1")) == [
        *("n2: Traceback", "n2:   File x", "n2: RuntimeError: so"),
        "n3: connection lost",
        "srun: error: n2: task 1: Killed",
    ]
    assert list(nodes.errors(tmp_path / "none")) == []


# ---- steps -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "available", "counts"),
    [
        ("", 1, [1]),
        ("", 8, [1, 2, 4, 8]),
        ("", 100, [1, 2, 4, 8, 16, 32, 64, 100]),
        ("all", 7, [7]),
        ("2 6 all", 7, [2, 6, 7]),
    ],
)
def test_node_counts(asked: str, available: int, counts: list[int]) -> None:
    """Steps run on powers of two and on all nodes, unless other counts are given."""
    assert steps.node_counts(asked, available) == counts


@pytest.mark.parametrize("asked", ["0", "3 9", "-1"])
def test_impossible_node_counts(asked: str) -> None:
    """A count that the job cannot have is an error with the job's number of nodes."""
    with pytest.raises(ValueError, match="the job has 8 nodes"):
        steps.node_counts(asked, 8)


def test_plan() -> None:
    """A plan has a step for every combination, unless that has only one rank.

    A step's words can be quoted for a shell and read back.
    """
    environment = {"RANKS_PER_NODE": "1 2", "TRANSPORTS": "udp mpi", "SIZES": "64K"}
    plan = steps.plan("bench", environment, 2)
    assert len(plan) == len({step.name for step in plan}) == 3 * 2 * 2
    assert all(step.nodes * step.ranks_per_node > 1 for step in plan)
    assert {step.document["collective"] for step in plan} == {"Allgather", "Bcast"}
    for step in plan:
        assert steps.Step.of(shlex.split(shlex.join(step.words))) == step
    (demo,) = steps.plan("demo", {"FILE": "/a file", "NODES": "all"}, 2)
    assert demo.command == ("demo", "/a file")
    assert "collective" not in demo.document


def test_resume(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A step that was recorded is not repeated, unless its settings have changed."""
    (tmp_path / "order.txt").write_text("n1\nn2\n")
    monkeypatch.setenv("SIZES", "64K")

    def todo() -> list[str]:
        return list(steps._todo("bench", tmp_path))  # noqa: SLF001 -- the command `todo`

    first, second = todo()
    lines, measured = tmp_path / "results.jsonl", tmp_path / "step.json"
    measured.write_text('{"measured": []}')
    assert steps.main("record", str(lines), str(measured), *shlex.split(first)) == 0
    assert todo() == [second]
    monkeypatch.setenv("SIZES", "64K,1M")
    assert len(todo()) == 2


def test_result_cut_off(tmp_path: Path) -> None:
    """A step whose line was cut off is not done; the next result gets a new line."""
    path = tmp_path / "results.jsonl"
    one, two, three = steps.plan("bench", {"COLLECTIVES": "Bcast"}, 8)
    steps.record(path, one, {"measured": [1]})
    steps.record(path, two, {"measured": [2]})
    path.write_bytes(path.read_bytes()[:-5])
    assert steps.done(path) == [one.document]
    steps.record(path, three, {"measured": [3]})
    recorded = [json.loads(line) for line in path.read_text().splitlines()]
    assert [each["measured"] for each in recorded] == [[1], [3]]


@pytest.mark.parametrize("line", ["[]", "null", '{"step": 3}', "{", "\x00\xff"])
def test_line_that_is_no_result(tmp_path: Path, line: str) -> None:
    """A line that is not a result does not count as a step that was done."""
    path = tmp_path / "results.jsonl"
    path.write_text(line + "\n")
    assert steps.done(path) == []
