# SPDX-License-Identifier: BSD-3-Clause
"""The benchmark's jobs measure the network and the contenders correctly."""

from __future__ import annotations

import pytest
import support

from bench.jobs import job, measurement
from bench.jobs.contenders import CONTENDERS, Contender
from bench.jobs.measurement import Measurement, Network
from bench.jobs.payload import LAYERS, STEPS, payload_bytes
from bench.jobs.setup import Setup, Task
from bench.testbed.cluster import BURST_BYTES, Cluster

NRANKS = 3
BLOCK_BYTES = 256 << 10
RATE_MBIT = 200
ALLGATHERS = 4
ROUND = 7
# Collectives, their blocks' bytes, and how often each is measured.
TASKS = (
    Task("Allgather", BLOCK_BYTES, ALLGATHERS),
    Task("Bcast", BLOCK_BYTES, 2),
    Task("Allgather+Reduce_scatter", 64 << 10, 2),
)


@pytest.mark.parametrize(
    "name",
    [
        *("mpimcast", "mpich", "openmpi-tuned"),
        pytest.param("gloo", marks=pytest.mark.long),  # 0.9 GB to install
    ],
)
def test_a_job_of_each_contender(name: str, cluster: Cluster) -> None:
    """A job's times are no shorter than the links allow, and its bytes are as expected.

    In an Allgather a host sends its block once by multicast; with another library it
    sends as many blocks as a ring does.
    """
    _require(name)
    setup = Setup(Network("cluster", rate_mbit=RATE_MBIT), range(NRANKS), cluster)
    measurements = job.run("A", setup, CONTENDERS[name], TASKS, ROUND)
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
        assert blocks < nbytes / BLOCK_BYTES / ALLGATHERS < 1.1 * blocks
    assert (gathered.counters.get("epochs", 0) > 0) == CONTENDERS[name].ours


@pytest.mark.parametrize(
    ("name", "gathers", "reductions"),
    [
        ("mpimcast", 1, NRANKS - 1),
        pytest.param("mpimcast-mpich", 1, NRANKS - 1, marks=pytest.mark.long),
        pytest.param("mpich", NRANKS - 1, NRANKS - 1, marks=pytest.mark.long),
        pytest.param("openmpi", NRANKS - 1, NRANKS - 1, marks=pytest.mark.long),
        pytest.param("openmpi-tuned", NRANKS - 1, NRANKS - 1, marks=pytest.mark.long),
        # Gloo sends as much for a Reduce-Scatter as for an Allreduce.
        pytest.param("gloo", NRANKS - 1, 2 * (NRANKS - 1), marks=pytest.mark.long),
    ],
)
def test_a_job_that_trains(
    name: str, gathers: int, reductions: int, cluster: Cluster
) -> None:
    """A host sends what the contender's algorithms do, and all gradients are right.

    In each layer's two gathers and its reduction it sends so many blocks. In a mixed
    step those of the reduction are twice as large.
    """
    support.torch_variables()
    setup = Setup(Network("cluster", rate_mbit=RATE_MBIT), range(NRANKS), cluster)
    tasks = [Task(kind, BLOCK_BYTES, 2) for kind in STEPS]
    found = job.run("T", setup, CONTENDERS[name], tasks)
    for each, factor in zip(found, (1, 2), strict=True):
        assert each.wrong_bytes == 0
        assert "torch" in each.versions
        assert (each.counters.get("epochs", 0) > 0) == CONTENDERS[name].ours
        blocks = LAYERS * (2 * gathers + factor * reductions)
        for rank in range(NRANKS):
            sent = each.ports[f"host{rank}"]["sent_bytes"] / BLOCK_BYTES / 2
            assert blocks < sent < 1.1 * blocks
        received = payload_bytes(each.collective, NRANKS, BLOCK_BYTES) - BURST_BYTES
        assert min(each.seconds) >= received * 8 / RATE_MBIT / 1e6


def _require(name: str) -> None:
    """Skip the test of gloo if torch is not installed."""
    if CONTENDERS[name].gloo and not CONTENDERS[name].is_installed:
        pytest.skip(
            "pip has found no CPU build of torch; see `make .venv-gloo/installed`"
        )


def _check(each: Measurement, task: Task, contender: Contender) -> None:
    """Check a measurement of a task."""
    assert (each.contender, each.round, each.nranks) == (contender.name, ROUND, NRANKS)
    assert each.block_bytes == task.nbytes
    assert len(each.seconds) == len(each.processor_seconds) == task.iterations
    assert each.wrong_bytes == 0
    assert set(each.ports) == {f"{k}{r}" for k in ("host", "to") for r in range(NRANKS)}
    assert all(" " not in name for name in each.versions)
    library = {"openmpi": "Open MPI", "mpich": "MPICH"}[contender.launcher.name]
    assert each.versions["mpi"].startswith(library)
    assert ("torch" in each.versions) == contender.gloo
    assert str(job.ROOT) not in each.line()
    nblocks = 1 if task.collective == "Bcast" else NRANKS - 1
    # An idle link has saved up a burst, which it carries without delay.
    limited_bytes = nblocks * task.nbytes - BURST_BYTES
    assert min(each.seconds) >= limited_bytes * 8 / RATE_MBIT / 1e6


@pytest.mark.parametrize(
    "name", ["mpimcast", pytest.param("gloo", marks=pytest.mark.long)]
)
def test_a_job_on_one_machine(name: str) -> None:
    """Without a cluster, too, all data is right, in blocks that are not whole words."""
    _require(name)
    tasks = [Task("Allgather", 8, 3), Task("Allgather", 4097, 3), Task("Bcast", 999, 3)]
    setup = Setup(Network("node"), range(NRANKS), whole=True)
    for each, task in zip(
        job.run("E", setup, CONTENDERS[name], tasks), tasks, strict=True
    ):
        assert each.block_bytes == task.nbytes
        assert len(each.seconds) == task.iterations
        assert each.wrong_bytes == 0
        assert not each.ports
        assert ("torch" in each.versions) == CONTENDERS[name].gloo


def test_a_job_that_fails(cluster: Cluster) -> None:
    """The error that a failing job raises contains its ranks' output."""
    setup = Setup(Network("cluster"), range(NRANKS), cluster)
    with pytest.raises(RuntimeError, match="no collective"):
        job.run("A", setup, CONTENDERS["openmpi"], [Task("no collective", 8, 1)])
