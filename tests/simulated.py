# SPDX-License-Identifier: BSD-3-Clause
"""Helpers for the simulator's tests: run it, and name the numbers in its results."""

from __future__ import annotations

from mpimcast.cli.sim import simulator as sim

MS = 1_000_000  # a millisecond, in nanoseconds
HEADER_BYTES = 16  # of a chunk's datagram
# The kinds of datagrams, which index the counters of a rank.
MULTICAST, CONTROL, REPAIR = range(3)
# The policies of repair: the values of a spec's field `repair`.
POLICIES = NAK, NEIGHBOUR, READ = range(3)


def run(**spec: object) -> sim.Plain:
    """Simulate the default spec with these changes, and return the result.

    The test fails if one of the properties that the simulator checks does not hold.
    """
    result = sim.run(spec)
    assert not result["violation"], f"{result['violation']}: {spec}"
    return result


def total(result: sim.Plain, what: str) -> int:
    """Return the sum of one counter over all ranks."""
    return sum(int(rank[what]) for rank in result["ranks"])
