# SPDX-License-Identifier: BSD-3-Clause
"""All ranks wait for a stopped rank while its host is alive, and get all bytes.

A stopped process answers nothing, but its host's kernel still does. The rank is stopped
at some point in its operations, for longer than two TIMEOUTs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from job import MPICH, OPENMPI, Job
from test_dead import NRANKS, OP, TIMEOUT_S, VICTIM, check_survivors, job_with

from bench.testbed.cluster import Cluster
from bench.testbed.launcher import Launcher

STOP_S = 2.5 * TIMEOUT_S
pytestmark = pytest.mark.timeout(90)


def stopped_job(
    cluster: Cluster, folder: Path, launcher: Launcher = OPENMPI, **spec: Any
) -> Job:
    """Return a job in which one rank is stopped; `spec` changes the job's spec."""
    return Job(
        cluster,
        NRANKS,
        folder,
        launcher=launcher,
        **{
            "sizes": [512 << 10],
            "repeat": 10,
            "mishaps": [{"what": "stop", "rank": VICTIM, "op": OP, "for_s": STOP_S}],
            **spec,
            "settings": {"timeout": TIMEOUT_S, **spec.get("settings", {})},
        },
    )


def check_waited(job: Job) -> None:
    """Check that no rank failed, and that some rank waited for over two TIMEOUTs."""
    results = job.results(60)
    longest_s = max(
        seconds
        for rank, result in results.items()
        if rank != VICTIM
        for seconds in result["seconds"]
    )
    assert longest_s > 2 * TIMEOUT_S


@pytest.mark.parametrize(
    ("repair", "launcher"),
    [
        pytest.param("nak", OPENMPI, id="nak-openmpi"),
        pytest.param("neighbour", MPICH, id="neighbour-mpich"),
        pytest.param("nak", MPICH, id="nak-mpich", marks=pytest.mark.long),
        pytest.param(
            "neighbour", OPENMPI, id="neighbour-openmpi", marks=pytest.mark.long
        ),
    ],
)
def test_during_an_operation(
    cluster: Cluster, tmp_path: Path, repair: str, launcher: Launcher
) -> None:
    """Under loss, all wait for a rank stopped during an operation, by either policy."""
    with stopped_job(
        cluster,
        tmp_path,
        launcher,
        settings={"repair": repair, "fault": "loss=0.02,seed=5"},
    ) as job:
        check_waited(job)


@pytest.mark.parametrize(
    "nbytes",
    [
        pytest.param(8, id="eager", marks=pytest.mark.long),
        pytest.param(3 << 20, id="release"),
    ],
)
def test_sizes(cluster: Cluster, tmp_path: Path, nbytes: int) -> None:
    """All wait in eager operations, and in those that need buffers until the release.

    Operations of 8 bytes are so short that it takes many for the stop to hit one.
    """
    with stopped_job(
        cluster, tmp_path, sizes=[nbytes], repeat=OP + 400 if nbytes < 9 else OP + 3
    ) as job:
        check_waited(job)


@pytest.mark.long
def test_before_entry(cluster: Cluster, tmp_path: Path) -> None:
    """All wait for a rank that is stopped before entry, together with its responder."""
    mishaps = [
        {"what": "stop", "rank": VICTIM, "op": OP, "for_s": STOP_S},
        {"what": "late", "rank": VICTIM, "op": OP, "for_s": 1},
    ]
    with stopped_job(cluster, tmp_path, mishaps=mishaps) as job:
        check_waited(job)


def test_killed_while_stopped(cluster: Cluster, tmp_path: Path) -> None:
    """The others wait for a stopped rank, and fail as soon as it is killed."""
    mishap = {"what": "stop_kill", "for_s": STOP_S}
    with job_with(cluster, tmp_path, **mishap) as job:
        results = job.results(40, without=[VICTIM], failing=True)
    check_survivors(results, longest_s=STOP_S + 2)
    for result in results.values():
        assert result["errors"][0]["seconds"] > 2 * TIMEOUT_S
        assert "has ended" in result["errors"][0]["text"]


@pytest.mark.long
def test_cut_off_while_stopped(cluster: Cluster, tmp_path: Path) -> None:
    """When the host of a stopped rank falls silent, the wait ends after TIMEOUT."""
    mishap = {"what": "stop_down", "for_s": STOP_S}
    with job_with(cluster, tmp_path, **mishap) as job:
        try:
            for rank in range(NRANKS):
                if rank != VICTIM:
                    job.await_file(f"{rank}.json", 40)
        finally:
            cluster.hosts[VICTIM].run("ip", "link", "set", "eth0", "up")
        results = job.results(40, without=[VICTIM], failing=True)
    check_survivors(results, longest_s=STOP_S + TIMEOUT_S * 1.25 + 1)
    for result in results.values():
        assert "has not answered" in result["errors"][0]["text"]


def test_late_for_too_long(cluster: Cluster, tmp_path: Path) -> None:
    """LATE_TIMEOUT ends the wait for a rank that is stopped for longer than that."""
    with job_with(
        cluster,
        tmp_path,
        what="stop",
        for_s=2 * STOP_S,
        settings={"late_timeout": TIMEOUT_S},
    ) as job:
        results = job.results(60, failing=True)
    victim = results.pop(VICTIM)
    check_survivors(results, longest_s=TIMEOUT_S + 1)
    for result in results.values():
        assert "LATE_TIMEOUT" in result["errors"][0]["text"]
    assert victim["errors"][0]["op"] in (OP, OP + 1)
