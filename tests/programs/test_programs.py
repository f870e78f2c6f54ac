# SPDX-License-Identifier: BSD-3-Clause
"""Random programs give the MPI library's results, and none hangs."""

from __future__ import annotations

from pathlib import Path

import pytest
import support

PLAY = Path(__file__).with_name("play.py")
# The MPI library, the number of ranks, and the number of programs, out of every 150.
JOBS = [
    pytest.param(support.BIN, 4, 90, id="openmpi"),
    pytest.param(support.MPICH_BIN, 3, 60, id="mpich"),
]
LIMIT_S = 200
NRUNS_LONG = 34


@pytest.mark.timeout((LIMIT_S + 10) * NRUNS_LONG)
@pytest.mark.parametrize(("bin_folder", "nranks", "count"), JOBS)
def test_programs(
    bin_folder: Path, nranks: int, count: int, seed: int, long: bool
) -> None:
    """Random programs give the MPI library's results on all ranks.

    They multicast under faults, with proxies on all or some ranks or without, share
    memory, and share so little that some of their communicators get none.
    """
    for number in range(seed, seed + (NRUNS_LONG if long else 1)):
        said = support.run(
            [
                *support.mpirun(nranks, bin_folder=bin_folder),
                *(PLAY, str(count), str(number)),
            ],
            limit_s=LIMIT_S,
        )
        told = support.last_json(said)
        assert told["programs"] >= count
        # Some ranks changed the order, most collectives multicast, some data was lost.
        assert told["moved"] > 0
        assert told["proxied"] > count // 10
        assert told["epochs"] > count
        # Seeds differ in it a lot: of five, from 10 in 90 programs to 138.
        assert told["node_operations"] > count // 20
        assert told["rx_repaired_chunks"] > 0
