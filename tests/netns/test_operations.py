# SPDX-License-Identifier: BSD-3-Clause
"""Every form of every collective works between hosts."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
import support
from exchange import FORMS, KINDS
from job import LAUNCHERS, SETTINGS, Job

from bench.testbed.cluster import Cluster
from bench.testbed.launcher import Launcher

CHUNK_BYTES = 1456  # what a frame of 1514 bytes carries
NRANKS = 4
pytestmark = pytest.mark.timeout(90)


class Rounds(Job):
    """Ranks that run rounds of operations; see tests/verbs/rounds_rank.py."""

    program = support.ROOT / "tests/verbs/rounds_rank.py"


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_operations(cluster: Cluster, tmp_path: Path, launcher: Launcher) -> None:
    """Results equal the MPI library's, even if two hosts lose a tenth of multicast."""
    cluster.shape(200, burst_bytes=4000)
    sizes = [1, CHUNK_BYTES + 1, 20 * CHUNK_BYTES, 150_000]
    repeat = 2
    rounds = [
        {
            "sizes": sizes,
            "repeat": repeat,
            "in_place": True,
            "kinds": KINDS,
            "forms": FORMS,
        }
    ]
    game = {"nranks": NRANKS, "nthreads": 1, "settings": SETTINGS, "rounds": rounds}
    stats = Counter[str]()
    with (
        cluster.losing([1, 3], 0.1, "multicast") as loss,
        Rounds(cluster, NRANKS, tmp_path, launcher=launcher, games=[game]) as job,
    ):
        for result in job.results(60).values():
            ((outcome,),) = result["games"]
            stats.update(outcome["stats"])
        assert loss.dropped()[0] > 0
    assert stats["epochs"] == NRANKS * len(KINDS) * len(FORMS) * len(sizes) * repeat
    assert stats["rx_repaired_chunks"] > 0
