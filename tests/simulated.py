# SPDX-License-Identifier: BSD-3-Clause
"""Helpers of the simulator's tests."""

from __future__ import annotations

from mpimcast.cli.sim import simulator as sim

MS = 1_000_000
HEADER_BYTES = 16
MULTICAST, CONTROL, REPAIR = range(3)
READ = 2


def run(**spec: object) -> sim.Plain:
    """Run the default spec with these changes; every property must hold."""
    result = sim.run(spec)
    assert not result["violation"], f"{result['violation']}: {spec}"
    return result


def total(result: sim.Plain, what: str) -> int:
    """Return the sum of one counter over all ranks."""
    return sum(int(rank[what]) for rank in result["ranks"])
