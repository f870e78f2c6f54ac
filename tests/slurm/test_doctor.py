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
BAD = 2


@contextlib.contextmanager
def narrow(links: Cluster) -> Iterator[None]:
    """Give a host an MTU that is less than that of the others."""
    links.hosts[BAD].run("ip", "link", "set", "eth0", "mtu", "1280")
    try:
        yield
    finally:
        links.hosts[BAD].run("ip", "link", "set", "eth0", "mtu", "1500")


@contextlib.contextmanager
def lossy(links: Cluster) -> Iterator[None]:
    """Make a host lose single frames, since all of the few batches might arrive."""
    links.shape(RATE_MBIT, burst_bytes=SINGLE_BURST_BYTES)
    try:
        with links.losing([BAD], 0.2):
            yield
    finally:
        links.shape(RATE_MBIT)


def spoilt(links: Cluster, how: str) -> AbstractContextManager[object]:
    """Return a context in which a host's link is faulty."""
    if how == "mtu":
        return narrow(links)
    return lossy(links) if how == "loss" else links.losing([BAD])


@pytest.mark.parametrize(
    ("how", "check"),
    [
        ("deaf", "multicast"),
        ("loss", "multicast"),
        ("mtu", "nodes"),
    ],
)
def test_bad_node(
    links: Cluster, network: Slurm, tmp_path: Path, how: str, check: str
) -> None:
    """The doctor names the faulty node and prints the command that excludes it."""
    with spoilt(links, how):
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
