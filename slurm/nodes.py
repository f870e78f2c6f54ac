# SPDX-License-Identifier: BSD-3-Clause
"""Answer the batch scripts' questions about nodes: ``python -m slurm.nodes``.

``check HOSTS ANSWERS``
    Print the nodes in the order of the network. HOSTS is a file with the nodes of the
    job, ANSWERS one with what they have printed. The exit code is 4 if a node has not
    answered, or cannot write in the folder of the results.
``ranks ORDER NODES RANKS``
    Print the node of each rank of a step, which has RANKS ranks on each of the first
    NODES nodes of the file ORDER.
``failed``
    Name the nodes that Slurm has lost, given sinfo's output on standard input.
``blame STEP ...``
    Print the few lines that explain why steps failed, from their files STEP.err and,
    for each node, STEP.NODE.err.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

_UNUSABLE = 4
_LINES_MAX = 4
_NODES_MAX = 4

# _SLURM matches lines that Slurm, not a rank, has written. The first of these that
# match _BEGAN name the task that failed first.
_SLURM = re.compile(r"(srun|slurmstepd-?\w*): ")
_BEGAN = re.compile(r"srun: error: .*(task|[Nn]ode|launch)")


class Answer(NamedTuple):
    """A node's answer to the check that the batch script runs on it.

    Attributes
    ----------
    address : str
        The node's position in the network, such as ``core.leaf1.n3``; the node's name
        if Slurm knows no position.
    name : str
        The node's name in Slurm.
    shares : bool
        Whether the node sees the folder of the results, and may write there.
    """

    address: str
    name: str
    shares: bool


def answers(lines: Iterable[str]) -> Iterator[Answer]:
    """Yield the nodes' answers, and skip lines that a site's prolog has printed."""
    for line in lines:
        words = line.split()
        if len(words) == 3 and words[2] in ("shared", "apart"):
            yield Answer(words[0], words[1], words[2] == "shared")


def sort_key(answer: Answer) -> list[tuple[int, int | str]]:
    """Return a key that sorts numbers in addresses by value: n9 before n10."""
    parts = re.findall(r"\d+|\D+", answer.address)
    return [(0, int(part)) if part.isdecimal() else (1, part) for part in parts]


def in_order(found: Iterable[Answer]) -> list[str]:
    """Return the nodes' names in an order in which neighbours share switches."""
    return [answer.name for answer in sorted(found, key=sort_key)]


def complaints(hosts: Sequence[str], found: Iterable[Answer]) -> dict[str, str]:
    """Return what is wrong with each unusable node of the job."""
    shares = {answer.name: answer.shares for answer in found}
    said = {
        True: "",
        False: "does not share the folder of the results, or cannot write there",
        None: "started no process",
    }
    wrong = {name: said[shares.get(name)] for name in hosts}
    return {name: what for name, what in wrong.items() if what}


def node_of_each_rank(order: Sequence[str], nnodes: int, ranks: int) -> list[str]:
    """Return the node of each rank of a step on the first nodes of the order."""
    if len(order) < nnodes:
        raise ValueError(f"the job has {len(order)} nodes, the step wants {nnodes}")
    return [name for name in order[:nnodes] for _ in range(ranks)]


def lost(lines: Iterable[str]) -> dict[str, str]:
    """Return the states of nodes that cannot work, by name, from sinfo's lines."""
    pairs = [line.split() for line in lines]
    return {
        name: state
        for name, state in (pair for pair in pairs if len(pair) == 2)
        if state.endswith("*") or state.startswith(("down", "fail", "error"))
    }


def blame(lines: Sequence[str]) -> list[str]:
    """Return the few lines of a step's errors that say what failed first, and why."""
    own = [line for line in lines if line.strip() and not _SLURM.match(line)]
    began = [line for line in lines if _BEGAN.match(line)]
    return own[-_LINES_MAX:] + began[:_LINES_MAX]


def errors(step: Path) -> Iterator[str]:
    """Yield the relevant error lines of a failed step, earliest nodes first."""
    paths = step.parent.glob(f"{step.name}.*.err")
    found = [
        (path.name[len(step.name) + 1 : -len(".err")], blame(_lines(path)))
        for path in sorted(paths, key=lambda path: path.stat().st_mtime_ns)
    ]
    for node, lines in [each for each in found if each[1]][:_NODES_MAX]:
        yield from (f"{node}: {line}" for line in lines)
    yield from blame(_lines(step.with_name(f"{step.name}.err")))


def _lines(path: Path) -> list[str]:
    return path.read_text(errors="replace").splitlines() if path.exists() else []


def without(names: Iterable[str]) -> str:
    """Return how to repeat a job without some nodes."""
    return f"to repeat the job without them: sbatch -x {','.join(sorted(names))} ..."


def _check(hosts: str, said: str) -> int:
    found = list(answers(Path(said).read_text(errors="replace").splitlines()))
    wrong = complaints(Path(hosts).read_text().split(), found)
    if wrong:
        for name, what in wrong.items():
            print(f"{name} {what}", file=sys.stderr)
        print(without(wrong), file=sys.stderr)
        return _UNUSABLE
    print(*in_order(found), sep="\n")
    return 0


def main(command: str, *arguments: str) -> int:
    """Run the command that the module's docstring describes; return the exit code."""
    if command == "check":
        return _check(*arguments)
    if command == "ranks":
        order, nnodes, ranks = arguments
        names = Path(order).read_text().split()
        print(*node_of_each_rank(names, int(nnodes), int(ranks)), sep="\n")
    elif command == "failed":
        names = lost(sys.stdin)
        for name, state in names.items():
            print(f"{name} is {state}")
        if names:
            print(without(names))
    else:
        print(*(line for step in arguments for line in errors(Path(step))), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
