# SPDX-License-Identifier: BSD-3-Clause
"""Measure what a proxy spares the ranks of a node: ``python -m bench.proxy``.

Jobs with PROGRESS=auto and PROGRESS=proxy take turns. In each, ranks gather blocks
beside a computation, and then wait for a late rank. The figures are processor time, of
the ranks and of the proxy, and numbers of threads. Time on the clock is no figure here:
on a machine with few or busy processors it says more about the others that run there.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from mpimcast._native.proxy import find

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = ROOT / "bench/jobs/proxied_ranks.py"

MODES = ("auto", "proxy")
SIZES = (4 << 10, 64 << 10, 1 << 20)

_LIMIT_S = 120
_WHAT = {"beside": "beside a computation", "waiting": "waiting for a late rank"}
_PARTS = ("call", "threads")  # of a rank's cost
_HEADS = (
    *("Allgather", "block", "auto: call + threads", "proxy: call + threads"),
    *("the proxy", "ranks, proxy : auto", "ranks and proxy : auto"),
)

# The measurements of a job: processor time by name and size, and numbers of threads.
Found = dict[str, Any]


def launch(mode: str, name: str, options: argparse.Namespace) -> Found:
    """Run a job, and return what its ranks have measured.

    Raise RuntimeError if it fails.
    """
    folder = Path(sys.executable).parent
    proxy = {"MPIMCAST_PROXY": name} if mode == "proxy" else {}
    settings = {
        **proxy,
        "MPIMCAST_PROGRESS": mode,
        "MPIMCAST_TRANSPORT": "udp",
        "MPIMCAST_NODE_BYTES": "0",
        "MPIMCAST_CHOICE": "always",
        "MPIMCAST_MIN_BYTES": "0",
        "OPENBLAS_NUM_THREADS": "1",
        "PYTHONPATH": str(ROOT),
    }
    root = ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM")
    done = subprocess.run(
        [
            *(folder / "mpirun", "--bind-to", "none", "-n", str(options.ranks)),
            *(sys.executable, PROGRAM, str(options.iterations), json.dumps(SIZES)),
            proxy.get("MPIMCAST_PROXY", ""),
        ],
        env={**os.environ, **dict.fromkeys(root, "1"), **settings},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
        timeout=_LIMIT_S,
    )
    if done.returncode != 0:
        raise RuntimeError(f"the ranks with PROGRESS={mode} failed:\n{done.stdout}")
    found: Found = json.loads(done.stdout.splitlines()[-1])
    return found


def end(name: str) -> None:
    """End the proxy that the ranks have started."""
    runner = find(name)
    if runner is not None:
        os.kill(runner.pid, signal.SIGTERM)


def rows(rounds: Sequence[dict[str, Found]]) -> list[tuple[str, ...]]:
    """Return the lines of the table: medians of the rounds, in us of an operation."""
    lines = []
    for what, words in _WHAT.items():
        for nbytes in map(str, SIZES):
            costs = {
                mode: [round_[mode][what][nbytes] for round_ in rounds]
                for mode in MODES
            }
            both = list(zip(*costs.values(), strict=True))
            ranks = [_ranks(proxied) / _ranks(host) for host, proxied in both]
            total = [
                (_ranks(proxied) + proxied["proxy"]) / _ranks(host)
                for host, proxied in both
            ]
            parts = (
                " + ".join(_middle(each[part] for each in some) for part in _PARTS)
                for some in costs.values()
            )
            own = _middle(each["proxy"] for each in costs["proxy"])
            size = f"{int(nbytes) >> 10} KiB"
            lines.append((words, size, *parts, own, _spread(ranks), _spread(total)))
    return lines


def _ranks(costs: dict[str, float]) -> float:
    """Return what an operation costs a rank's process."""
    return sum(costs[part] for part in _PARTS)


def _middle(costs: Iterable[float]) -> str:
    return f"{statistics.median(costs):.0f}"


def _spread(ratios: Sequence[float]) -> str:
    """Return the median of ratios, with the least and the greatest."""
    middle = statistics.median(ratios)
    return f"{middle:.2f} ({min(ratios):.2f} to {max(ratios):.2f})"


def main() -> None:
    """Run the jobs, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--iterations", type=int, default=20)
    options = parser.parse_args()
    name = f"bench-{os.getpid()}-{time.time_ns():x}"
    try:
        rounds = [
            {mode: launch(mode, name, options) for mode in MODES}
            for _ in range(options.rounds)
        ]
    finally:
        end(name)
    print(f"| {' | '.join(_HEADS)} |\n|{'---|' * len(_HEADS)}")
    for line in rows(rounds):
        print(f"| {' | '.join(line)} |")
    print()
    for mode in MODES:
        blocking, all_ = rounds[0][mode]["threads"]
        print(
            f"PROGRESS={mode}: a rank has {blocking} threads more after an Allgather, "
            f"and {all_} after an Iallgather"
        )


if __name__ == "__main__":
    main()
