# SPDX-License-Identifier: BSD-3-Clause
"""Plan a batch job's steps, and record those that are done: ``python -m slurm.steps``.

``todo KIND RESULTS``
    Print a line for each step that is left to do, its words quoted for a shell.
``record LINES JSON WORD ...``
    Append a step's results, which the file JSON holds, to the file LINES. The words are
    those that ``todo`` has printed for the step.

Environment variables determine the steps; ``slurm/README.md`` lists them.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any

_SETTINGS = {
    "NODES": "",
    "RANKS_PER_NODE": "1",
    "TRANSPORTS": "auto",
    "COLLECTIVES": "Allgather Bcast",
    "SIZES": "64K:16M",
    "ITERATIONS": "20",
    "ORDER": "topology",
    "FILE": "",
}


@dataclass(frozen=True)
class Step:
    """One launch of ranks, which measures one thing.

    Attributes
    ----------
    name : str
        The name of the step's files.
    nodes, ranks_per_node : int
        The number of nodes, taken from the front of the order, and of ranks on each.
    transport, order : str
        The ranks' TRANSPORT, and the order of the nodes.
    command : tuple of str
        The words that follow ``python -m mpimcast``.
    """

    name: str
    nodes: int
    ranks_per_node: int
    transport: str
    order: str
    command: tuple[str, ...]

    @property
    def words(self) -> list[str]:
        """The step as words for a shell; the inverse of `of`."""
        numbers = [str(self.nodes), str(self.ranks_per_node)]
        return [self.name, *numbers, self.transport, self.order, *self.command]

    @staticmethod
    def of(words: Sequence[str]) -> Step:
        """Return the step that `words` describe."""
        name, nodes, ranks, transport, order, *command = words
        return Step(name, int(nodes), int(ranks), transport, order, tuple(command))

    @property
    def document(self) -> dict[str, Any]:
        """The step as it is recorded with its results."""
        said = {**asdict(self), "command": list(self.command)}
        if self.command[0] == "bench":
            said["collective"] = self.command[1]
        return said


def node_counts(asked: str, available: int) -> list[int]:
    """Return the numbers of nodes to measure on: powers of two and all, by default."""
    if not asked:
        powers = [1 << bits for bits in range(available.bit_length())]
        return sorted({*powers, available})
    counts = [available if word == "all" else int(word) for word in asked.split()]
    for count in counts:
        if not 1 <= count <= available:
            raise ValueError(f"NODES has {count}, but the job has {available} nodes")
    return counts


def plan(kind: str, environment: Mapping[str, str], available: int) -> list[Step]:
    """Return all steps of a job of kind "bench" or "demo" on `available` nodes."""
    settings = {
        name: environment.get(name) or default for name, default in _SETTINGS.items()
    }
    steps = []
    for nodes, ranks, transport in product(
        node_counts(settings["NODES"], available),
        map(int, settings["RANKS_PER_NODE"].split()),
        settings["TRANSPORTS"].split(),
    ):
        if nodes * ranks < 2:
            continue  # a single rank has no receiver
        for title, command in _commands(kind, settings):
            name = f"{nodes}x{ranks}-{transport}-{title}"
            order = settings["ORDER"]
            steps.append(Step(name, nodes, ranks, transport, order, command))
    return steps


def _commands(
    kind: str, settings: Mapping[str, str]
) -> Iterator[tuple[str, tuple[str, ...]]]:
    if kind == "demo":
        yield "demo", (("demo", settings["FILE"]) if settings["FILE"] else ("demo",))
        return
    how = ("--sizes", settings["SIZES"], "--iterations", settings["ITERATIONS"])
    for collective in settings["COLLECTIVES"].split():
        yield collective, ("bench", collective, *how)


def done(path: Path) -> list[dict[str, Any]]:
    """Return the documents of the steps whose results are recorded."""
    if not path.exists():
        return []
    recorded = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            document = json.loads(line)
        except ValueError:
            continue  # the writer was killed: the step will be repeated
        if isinstance(document, dict) and isinstance(document.get("step"), dict):
            recorded.append(document["step"])
    return recorded


def record(path: Path, step: Step, measured: dict[str, Any]) -> None:
    """Append a finished step's results, and remove an incomplete line before them."""
    line = json.dumps({"step": step.document, **measured}) + "\n"
    with path.open("ab+") as file:
        file.seek(0)
        file.truncate(file.read().rfind(b"\n") + 1)
        file.write(line.encode())


def _todo(kind: str, folder: Path) -> Iterator[str]:
    available = len((folder / "order.txt").read_text().split())
    recorded = done(folder / "results.jsonl")
    for step in plan(kind, os.environ, available):
        if step.document not in recorded:
            yield shlex.join(step.words)


def main(command: str, *arguments: str) -> int:
    """Run the command that the module's docstring describes; return the exit code."""
    if command == "todo":
        kind, folder = arguments
        try:
            for line in _todo(kind, Path(folder)):
                print(line)
        except ValueError as error:
            print(f"wrong setting: {error}", file=sys.stderr)
            return 2
        return 0
    lines, measured, *words = arguments
    record(Path(lines), Step.of(words), json.loads(Path(measured).read_text()))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
