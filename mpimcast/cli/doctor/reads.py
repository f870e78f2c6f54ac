# SPDX-License-Identifier: BSD-3-Clause
"""Checks whether each rank can fetch lost chunks from its neighbour by RDMA Read."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from mpimcast._native import engine
from mpimcast._native.operation import Description, NativeOperation
from mpimcast._native.stream import Stream
from mpimcast.cli.doctor.blame import find_faults
from mpimcast.cli.doctor.finding import Finding
from mpimcast.cli.doctor.trial import Trial
from mpimcast.errors import Error

if TYPE_CHECKING:
    from mpimcast._settings.config import Config
    from mpimcast.cli.doctor.report import Report
    from mpimcast.cli.doctor.world import World

_BLOCK_BYTES = 64 << 10
_TIMEOUT_S = 5.0
_CHANNEL = 1 << 16  # any channel will do, since the team has no other stream


def check(report: Report, world: World, trial: Trial) -> None:
    """Run an Allgather in which no multicast arrives, so that all data must be read."""
    report.measured["reads"] = measured = {"transport": trial.kind.name, "chunks": {}}
    if trial.kind.name != "verbs":
        report.skip(
            ["reads"], f"{trial.kind.name} does not read the memory of other ranks"
        )
        return
    deaf = dataclasses.replace(
        trial.config,
        fault="loss=1,dir=rx,kind=multicast",
        repair="read",
        timeout=_TIMEOUT_S,
    )
    reading = Trial(world, deaf, trial.kind, [trial.members])
    stream = _stream(reading, deaf)
    told = world.exchange(_gather(stream) if stream is not None else 0)
    if stream is not None:  # all ranks have finished reading
        stream.close()
    reading.close()
    measured["chunks"] = {str(rank): told[rank] for rank in trial.members}
    lost = {}
    for place, rank in enumerate(trial.members):
        left = trial.members[place - 1]
        lost[world.nodes[left], world.nodes[rank]] = 0.0 if told[rank] else 1.0
    report.add(
        Finding(
            fault.node,
            "reads",
            "degraded",
            "memory cannot be read between it and "
            + ", ".join({**fault.incoming, **fault.outgoing}),
            f"on {fault.node}: ibv_devinfo -v (max_qp_rd_atom); ulimit -l unlimited",
            "repairs of what multicast loses by its sender's processor",
            leave_out=True,
        )
        for fault in find_faults(lost)
    )


def _stream(trial: Trial, config: Config) -> Stream | None:
    if trial.endpoint is None:
        return None
    return Stream(trial.endpoint, config, _CHANNEL)


def _gather(stream: Stream) -> int:
    """Return how many chunks this rank has read; 0 if the result is wrong."""
    rank, nranks = stream.endpoint.rank, stream.endpoint.nranks
    block = np.full(_BLOCK_BYTES, rank % 251, np.uint8)
    place = np.frombuffer(engine.allocate(_BLOCK_BYTES * nranks), np.uint8)
    description = Description("allgather", _BLOCK_BYTES)
    description.set_addresses(block.ctypes.data, place.ctypes.data)
    native = NativeOperation(stream, "Allgather")
    try:
        over = native.start(description)
        while not over:  # TIMEOUT bounds the wait
            over = native.wait()
    except Error:
        return 0
    finally:
        native.free()
    right = np.repeat((np.arange(nranks) % 251).astype(np.uint8), _BLOCK_BYTES)
    return stream.counters()["read_chunks"] if np.array_equal(place, right) else 0
