# SPDX-License-Identifier: BSD-3-Clause
"""Random programs give the MPI library's results, and end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import support

PLAY = Path(__file__).with_name("play.py")
# The MPI library, the number of ranks, and how many of every 150 programs run so.
JOBS = [
    pytest.param(support.BIN, 4, 90, id="openmpi"),
    pytest.param(support.MPICH_BIN, 3, 60, id="mpich"),
]
LIMIT_S = 200
NRUNS_LONG = 34


@pytest.mark.timeout((LIMIT_S + 10) * NRUNS_LONG)
@pytest.mark.parametrize(("environment", "nranks", "count"), JOBS)
def test_programs(
    environment: Path, nranks: int, count: int, seed: int, long: bool
) -> None:
    """Random programs give the MPI library's results on all ranks, under faults too."""
    for number in range(seed, seed + (NRUNS_LONG if long else 1)):
        said = support.run(
            [
                *support.mpirun(nranks, environment=environment),
                *(PLAY, str(count), str(number)),
            ],
            limit_s=LIMIT_S,
        )
        told = json.loads(said.splitlines()[-1])
        assert told["programs"] >= count
        # Some orders were ranks' own, most collectives multicast, and some data lost.
        assert told["moved"] > 0
        assert told["epochs"] > count
        assert told["rx_repaired_chunks"] > 0
