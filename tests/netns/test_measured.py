# SPDX-License-Identifier: BSD-3-Clause
"""The benchmark's jobs measure what happened."""

from __future__ import annotations

import pytest

from bench.jobs import job, measurement
from bench.jobs.contenders import CONTENDERS, Contender
from bench.jobs.measurement import Measurement, Network
from bench.jobs.setup import Setup, Task
from bench.testbed.cluster import Cluster

NRANKS = 3
BLOCK = 256 << 10
RATE_MBIT = 200
TASKS = (
    Task("Allgather", BLOCK, 4),
    Task("Bcast", BLOCK, 2),
    Task("Allgather+Reduce_scatter", 64 << 10, 2),
)


@pytest.mark.parametrize("name", ["mpimcast", "mpich", "openmpi-tuned"])
def test_jobs(name: str, cluster: Cluster) -> None:
    """They hold times that links allow, and bytes that a contender has to send."""
    setup = Setup(Network("cluster", rate_mbit=RATE_MBIT), range(NRANKS), cluster)
    measurements = job.run("A", setup, CONTENDERS[name], TASKS, 7)
    assert [each.collective for each in measurements] == [
        each.collective for each in TASKS
    ]
    for each, task in zip(measurements, TASKS, strict=True):
        _check(each, task, CONTENDERS[name])
        assert measurement.parse(each.line()) == each
    gathered, *_ = measurements
    sent = [gathered.ports[f"host{rank}"]["sent_bytes"] for rank in range(NRANKS)]
    blocks = 1 if CONTENDERS[name].ours else NRANKS - 1
    for nbytes in sent:
        assert blocks < nbytes / BLOCK / 4 < 1.1 * blocks
    assert (gathered.counters.get("epochs", 0) > 0) == CONTENDERS[name].ours


def _check(each: Measurement, task: Task, contender: Contender) -> None:
    assert (each.contender, each.round, each.nranks) == (contender.name, 7, NRANKS)
    assert each.block_bytes == task.nbytes
    assert len(each.seconds) == len(each.processor_seconds) == task.iterations
    assert each.wrong_bytes == 0
    assert set(each.ports) == {f"{k}{r}" for k in ("host", "to") for r in range(NRANKS)}
    assert all(" " not in name for name in each.versions)
    library = {"openmpi": "Open MPI", "mpich": "MPICH"}[contender.launcher.name]
    assert each.versions["mpi"].startswith(library)
    assert str(job.ROOT) not in each.line()
    received = task.nbytes if task.collective == "Bcast" else 2 * task.nbytes
    burst_bytes = 40000
    assert min(each.seconds) >= (received - burst_bytes) * 8 / RATE_MBIT / 1e6


def test_a_job_that_fails(cluster: Cluster) -> None:
    """A job that fails raises an error that holds the ranks' output."""
    setup = Setup(Network("cluster"), range(NRANKS), cluster)
    with pytest.raises(RuntimeError, match="no collective"):
        job.run("A", setup, CONTENDERS["openmpi"], [Task("no collective", 8, 1)])
