# SPDX-License-Identifier: BSD-3-Clause
"""When a rank or its network dies, all others soon raise the same error."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from job import LAUNCHERS, OPENMPI, Job

from bench.testbed.cluster import Cluster
from bench.testbed.launcher import Launcher

NRANKS = 4
VICTIM = 2
OP = 5  # the operation before or during which something goes wrong
BLOCK_BYTES = 512 << 10
TIMEOUT_S = 1.5
pytestmark = pytest.mark.timeout(60)


def check_survivors(
    results: Mapping[int, Mapping[str, Any]],
    victim: int = VICTIM,
    longest_s: float = TIMEOUT_S * 1.25 + 1,
) -> None:
    """Check that all raised the same error in time, and went on without the victim.

    Parameters
    ----------
    results
        The results of all ranks except the victim.
    victim
        The rank that the errors must name.
    longest_s
        How long the operation that failed may have taken.
    """
    errors = {rank: result["errors"][0] for rank, result in results.items()}
    assert len({error["kind"] for error in errors.values()}) == 1, errors
    for error in errors.values():
        # Some ranks may have completed an operation that the others could not complete.
        assert error["op"] in (OP - 1, OP, OP + 1)
        assert error["ranks"] == [victim], error
        assert f"rank {victim}" in error["text"]
        assert error["seconds"] < longest_s
    for result in results.values():
        assert result["poisoned_seconds"] < 0.1
        assert result["spare_worked"]


def job_with(
    cluster: Cluster,
    folder: Path,
    launcher: Launcher = OPENMPI,
    *,
    nranks: int = NRANKS,
    outlive: bool = True,
    open_first: bool = False,
    **mishap: Any,
) -> Job:
    """Return a job in which something goes wrong on one rank.

    Parameters
    ----------
    outlive
        See bench.testbed.program.Program.
    open_first
        See gather.Spec.
    **mishap
        Attributes of gather.Mishap; by default it hits VICTIM at OP. Also `settings`,
        which are added to the TIMEOUT.
    """
    return Job(
        cluster,
        nranks,
        folder,
        launcher=launcher,
        outlive=outlive,
        sizes=[BLOCK_BYTES],
        repeat=10,
        use_spare=True,
        open_first=open_first,
        settings={"timeout": TIMEOUT_S, **mishap.pop("settings", {})},
        mishaps=[{"rank": VICTIM, "op": OP, **mishap}],
    )


@pytest.mark.parametrize("launcher", LAUNCHERS)
@pytest.mark.parametrize(
    "after_s", [None, 0.01, 0.03], ids=["before", "early", "halfway"]
)
def test_killed(
    cluster: Cluster, tmp_path: Path, after_s: float | None, launcher: Launcher
) -> None:
    """If a rank is killed before an operation or ends during it, the others name it."""
    mishap = {"what": "kill"} if after_s is None else {"what": "die", "for_s": after_s}
    with job_with(cluster, tmp_path, launcher, **mishap) as job:
        results = job.results(20, without=[VICTIM], failing=True)
    check_survivors(results)
    for result in results.values():
        assert result["errors"][0]["kind"] == "RankLeft"
        assert "has ended" in result["errors"][0]["text"]


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_freeing_without_a_dead_rank(
    cluster: Cluster, tmp_path: Path, launcher: Launcher
) -> None:
    """Freeing a communicator on which nothing failed does not wait for a dead rank.

    That communicator opened the transport, and another one failed later.
    """
    with job_with(cluster, tmp_path, launcher, open_first=True, what="kill") as job:
        check_survivors(job.results(20, without=[VICTIM], failing=True))


@pytest.mark.parametrize("after_s", [0, 0.03])
def test_interface_down(cluster: Cluster, tmp_path: Path, after_s: float) -> None:
    """A rank whose interface goes down says that it cannot send; the others name it."""
    with job_with(cluster, tmp_path, what="down", for_s=after_s) as job:
        try:
            for rank in range(NRANKS):
                job.await_file(f"{rank}.json", 20)
        finally:
            cluster.hosts[VICTIM].run("ip", "link", "set", "eth0", "up")
        results = job.results(20, failing=True)
    victim = results.pop(VICTIM)
    check_survivors(results)
    error = victim["errors"][0]
    assert error["kind"] == "TransportError"
    assert "cannot send on interface eth0" in error["text"]


def test_interface_narrows(cluster: Cluster, tmp_path: Path) -> None:
    """If a rank's MTU shrinks below a datagram, it reports that, and all ranks fail."""
    with job_with(cluster, tmp_path, what="narrow", for_s=0.01) as job:
        try:
            for rank in range(NRANKS):
                job.await_file(f"{rank}.json", 20)
        finally:
            cluster.hosts[VICTIM].run("ip", "link", "set", "eth0", "mtu", "1500")
        results = job.results(20, failing=True)
    for result in results.values():
        assert result["errors"][0]["kind"] == "TransportError"
    text = results[VICTIM]["errors"][0]["text"]
    assert "a datagram does not fit into the MTU of eth0" in text


def test_cable_pulled_out(cluster: Cluster, tmp_path: Path) -> None:
    """If a rank's cable is pulled out, the others name it, and it also fails."""
    with job_with(cluster, tmp_path, what="meet") as job:
        job.await_meeting(OP)
        with cluster.unplugged(VICTIM):
            job.go(OP)
            for rank in range(NRANKS):
                job.await_file(f"{rank}.json", 20)
        results = job.results(20, failing=True)
    victim = results.pop(VICTIM)
    check_survivors(results)
    assert victim["errors"]


@pytest.mark.parametrize(
    ("nranks", "absent"),
    [
        *((4, rank) for rank in range(4)),
        *(pytest.param(5, rank, marks=pytest.mark.long) for rank in range(5)),
    ],
)
def test_never_enters(
    cluster: Cluster, tmp_path: Path, nranks: int, absent: int
) -> None:
    """ENTRY_TIMEOUT ends the wait for a rank that is alive but does not enter."""
    settings = {"entry_timeout": 1}
    mishap = {"what": "meet", "rank": absent, "settings": settings}
    # No rank dies, so the launcher need not let ranks outlive another.
    with job_with(cluster, tmp_path, nranks=nranks, outlive=False, **mishap) as job:
        for rank in range(nranks):
            if rank != absent:
                job.await_file(f"{rank}.json", 20)
        job.go(OP)
        results = job.results(20, failing=True)
    latecomer = results.pop(absent)
    check_survivors(results, absent)
    assert latecomer["errors"][0]["op"] == OP
    assert latecomer["errors"][0]["ranks"] == [absent]
