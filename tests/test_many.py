# SPDX-License-Identifier: BSD-3-Clause
"""A job may have hundreds of communicators, at once and one after the other."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import BIN, MPICH_BIN, mpirun, require_tool, run, skip_or_fail

from bench.testbed import host

PROGRAM = Path(__file__).with_name("many.py")
LIMIT_S = 60
LIMIT_LONG_S = 280
# Runs a command in its own network namespace, in which nobody else joins groups.
ALONE = ("unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh")


@pytest.mark.parametrize(
    ("bin_folder", "nranks"), [(BIN, 3), (MPICH_BIN, 2)], ids=["openmpi", "mpich"]
)
def test_many(bin_folder: Path, nranks: int, long: bool) -> None:
    """Communicators give back their memory, descriptors, groups and threads.

    200 are alive at once, and then 200 come and go (with `--long`, 2,000).
    """
    require_tool("unshare")
    require_tool("ip")
    reason = host.why_unavailable()
    if reason:
        skip_or_fail(reason)
    command = [*mpirun(nranks, bin_folder=bin_folder), PROGRAM]
    times = "2000" if long else "200"
    print(
        run(
            [*ALONE, *command, times],
            limit_s=LIMIT_LONG_S if long else LIMIT_S,
        )
    )
