# SPDX-License-Identifier: BSD-3-Clause
"""The doctor, run as a batch job, finds the one faulty node of four."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from batch import Batch
from cluster import RATE_MBIT, Slurm
from support import MPICH_BIN

from bench.testbed.cluster import SINGLE_BURST_BYTES, Cluster

pytestmark = pytest.mark.timeout(200)

LIMIT_S = 120
MPICH = MPICH_BIN / "python"
BAD = 2  # the faulty node


@contextlib.contextmanager
def narrow(links: Cluster) -> Iterator[None]:
    """Give the faulty node a smaller MTU than all others until the block ends."""
    links.hosts[BAD].run("ip", "link", "set", "eth0", "mtu", "1280")
    try:
        yield
    finally:
        links.hosts[BAD].run("ip", "link", "set", "eth0", "mtu", "1500")


@contextlib.contextmanager
def lossy(links: Cluster) -> Iterator[None]:
    """Have the switch lose a fifth of the frames that it sends to the faulty node.

    It drops single frames. If it dropped the kernel's batches, which are few, all of
    them might arrive.
    """
    links.shape(RATE_MBIT, burst_bytes=SINGLE_BURST_BYTES)
    try:
        with links.losing([BAD], 0.2):
            yield
    finally:
        links.shape(RATE_MBIT)


def faulty(links: Cluster, fault: str) -> AbstractContextManager[object]:
    """Return a context in which a node is faulty: "mtu", "loss", or "deaf".

    A deaf node receives no multicast.
    """
    if fault == "mtu":
        return narrow(links)
    return lossy(links) if fault == "loss" else links.losing([BAD])


@pytest.mark.parametrize(
    ("fault", "check"),
    [
        ("deaf", "multicast"),
        ("loss", "multicast"),
        ("mtu", "nodes"),
    ],
)
def test_bad_node(
    links: Cluster, network: Slurm, tmp_path: Path, fault: str, check: str
) -> None:
    """The doctor's check names the faulty node, and the job prints how to exclude it.

    The job's exit status is the doctor's.
    """
    with faulty(links, fault):
        batch = Batch(
            *(network, "doctor.sbatch", tmp_path, MPICH),
            options=["--nodes=4"],
            settings={"MPI_TYPE": "pmi2"},
        )
        assert batch.wait(LIMIT_S) == "FAILED", batch.output
    found = json.loads((batch.results / "doctor.json").read_text())
    assert batch.exit_code == {"degraded": 3, "unusable": 4}[found["verdict"]]
    assert found["exclude"] == [f"host{BAD}"]
    named = [each for each in found["findings"] if each["node"] == f"host{BAD}"]
    assert check in {each["check"] for each in named}
    assert f"sbatch -x host{BAD}" in batch.output
