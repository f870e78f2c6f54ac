# SPDX-License-Identifier: BSD-3-Clause
"""Makes the benchmark's measurements for tests."""

from __future__ import annotations

import dataclasses

from bench.jobs.measurement import Measurement, Network

NETWORK = Network("cluster", rate_mbit=80, burst_bytes=1000)  # 10^7 bytes a second
BLOCK_BYTES = 100_000


def measured(
    contender: str, round_: int, seconds: list[float], **changes: object
) -> Measurement:
    """Return a measurement of an Allgather of four ranks, with these changes.

    It has two hosts' ports and the two switch ports to these hosts. The same number of
    bytes left through each port.
    """
    port = {"sent_bytes": 4 * BLOCK_BYTES, "sent_frames": 9, "dropped_frames": 1}
    found = Measurement(
        cell="A",
        contender=contender,
        collective="Allgather",
        nranks=4,
        block_bytes=BLOCK_BYTES,
        round=round_,
        network=NETWORK,
        seconds=seconds,
        processor_seconds=[0.5 for _ in seconds],
        ports={
            name: port for kind in ("host", "to") for name in (f"{kind}0", f"{kind}1")
        },
        counters={"epochs": 4, "rx_lost_chunks": 3, "tx_repair_bytes": 50},
        lost={"bytes": 40},
        versions={"mpi": "some MPI"},
        load=[1.0, 2.0],
        begin="2026-01-01",
    )
    return dataclasses.replace(found, **changes)  # type: ignore[arg-type]


MEASUREMENTS = [
    *(measured("mpimcast", 0, [1, 2, 3]), measured("mpimcast", 1, [4, 4, 4])),
    *(measured("mpich", 0, [3]), measured("mpich", 1, [2])),
    *(measured("openmpi-tuned", 0, [2]), measured("openmpi-tuned", 1, [2])),
]
