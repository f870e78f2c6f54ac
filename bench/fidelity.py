# SPDX-License-Identifier: BSD-3-Clause
"""Compare the simulator with the emulated cluster: ``python -m bench.fidelity``.

Both carry out the same Allgathers over links of the same rates, buckets and queues. The
time of an operation is from the last rank's start to the last rank's end, after a pause
that fills the buckets again. Needs root, as the cluster does.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from bench.jobs import job
from bench.jobs.contenders import CONTENDERS
from bench.jobs.measurement import Network
from bench.jobs.setup import Setup, Task
from bench.testbed import twin
from bench.testbed.cluster import BURST_BYTES, SINGLE_BURST_BYTES, Cluster

NRANKS = (4, 8, 16)
BLOCKS_BYTES = (256 << 10, 1 << 20)
LOSSES = (0.0, 0.01)
ITERATIONS = 15
RATE_MBIT = 100
# So long that nothing is lost but on purpose: losses of a burst are another matter.
_QUEUE_BYTES = 512 << 10


class Row(NamedTuple):
    """One comparison: medians of times, and bytes of all links in an operation."""

    nranks: int
    block_bytes: int
    loss: float
    measured_s: float
    simulated_s: float
    counted_bytes: float
    simulated_bytes: float

    def words(self) -> list[str]:
        """Return the cells of its line in the table."""
        return [
            str(self.nranks),
            f"{self.block_bytes // 1024} KiB",
            f"{self.loss:g}",
            f"{self.measured_s * 1000:.1f}",
            f"{self.simulated_s * 1000:.1f}",
            f"{self.simulated_s / self.measured_s:.3f}",
            f"{self.simulated_bytes / self.counted_bytes:.4f}",
        ]


def compare(cluster: Cluster, nranks: int, loss: float) -> Iterator[Row]:
    """Yield the comparisons of all sizes on some of a cluster's hosts."""
    burst_bytes = SINGLE_BURST_BYTES if loss else BURST_BYTES
    cluster.shape(RATE_MBIT, burst_bytes=burst_bytes, queue_bytes=_QUEUE_BYTES)
    network = Network("cluster", rate_mbit=RATE_MBIT, burst_bytes=burst_bytes)
    setup = Setup(replace(network, loss=loss), range(nranks), cluster)
    tasks = [Task("Allgather", nbytes, ITERATIONS) for nbytes in BLOCKS_BYTES]
    with cluster.losing(range(nranks), loss, "udp") as filtered:
        measured = job.run(
            "fidelity", setup._replace(loss=filtered), CONTENDERS["mpimcast"], tasks
        )
    place = twin.scene(nranks, RATE_MBIT, loss, burst_bytes)
    for task, found in zip(tasks, measured, strict=True):
        simulated = [
            twin.simulate(place, nranks, task.nbytes, seed=seed)
            for seed in range(1, 1 + ITERATIONS)
        ]
        counted = sum(port["sent_bytes"] for port in found.ports.values())
        yield Row(
            nranks,
            task.nbytes,
            loss,
            statistics.median(found.seconds),
            statistics.median(each["time_ns"] for each in simulated) / 1e9,
            counted / ITERATIONS,
            statistics.mean(twin.counted_bytes(each, loss) for each in simulated),
        )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--ranks", type=int, nargs="+", default=NRANKS)
    nranks = parser.parse_args().ranks
    heads = [
        *("ranks", "block", "loss", "measured, ms", "simulated, ms"),
        *("simulated / measured", "bytes, simulated / counted"),
    ]
    print(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}")
    with Cluster(max(nranks)) as cluster:
        for number in nranks:
            for loss in LOSSES:
                for row in compare(cluster, number, loss):
                    print(f"| {' | '.join(row.words())} |", flush=True)


if __name__ == "__main__":
    main()
