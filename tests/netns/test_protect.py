# SPDX-License-Identifier: BSD-3-Clause
"""Between hosts, protected teams of node leaders work on one rail and on two."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from exchange import FORMS, KINDS
from job import SETTINGS, Rounds

from bench.testbed.cluster import Cluster

# The number of each rank's host.
PLACES = [0, 1, 2, 0, 1, 2]
pytestmark = pytest.mark.timeout(120)


@pytest.fixture(scope="module")
def wired(able: None) -> Iterator[Cluster]:  # noqa: ARG001 -- must come first
    """Yield hosts that have two links each, to two switches."""
    with Cluster(max(PLACES) + 1, nlinks=2) as cluster:
        yield cluster


@pytest.mark.parametrize("protect", ["off", "authenticate", "encrypt"])
@pytest.mark.parametrize("rails", [1, 2])
def test_operations(wired: Cluster, tmp_path: Path, rails: int, protect: str) -> None:
    """Results equal the MPI library's, though a host loses a tenth of the datagrams.

    Nothing counts as forged or replayed.
    """
    wired.shape(200, burst_bytes=4000)
    sizes = [1, 64, 1457, 150_000]
    rounds = [{"sizes": sizes, "in_place": True, "kinds": KINDS, "forms": FORMS}]
    settings = {**SETTINGS, "rails": rails, "protect": protect}
    game = {"nranks": len(PLACES), "nthreads": 1}
    game |= {"settings": settings, "rounds": rounds}
    stats = Counter[str]()
    with (
        wired.losing([1], 0.1, "multicast") as loss,
        Rounds(wired, PLACES, tmp_path, games=[game]) as job,
    ):
        for result in job.results(90).values():
            ((outcome,),) = result["games"]
            stats.update(outcome["stats"])
        assert loss.dropped()[0] > 0
    noperations = len(KINDS) * len(FORMS) * len(sizes)
    assert stats["node_operations"] == len(PLACES) * noperations
    assert stats["rx_repaired_chunks"] > 0
    assert stats["rx_forged_datagrams"] == 0
    assert stats["rx_replayed_datagrams"] == 0
