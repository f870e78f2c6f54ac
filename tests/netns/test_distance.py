# SPDX-License-Identifier: BSD-3-Clause
"""Hosts that are far from each other: delay, losses by seed, and operations there."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import support
from job import Job, summed_stats

from bench.distance import Case, contenders, measure
from bench.testbed.cluster import SINGLE_BURST_BYTES, address
from bench.testbed.distance import Crossing, Distance, DistantCluster

PROGRAM = Path(__file__).with_name("crossing.py")
TOTAL = 4000
ROUND_TRIP_MS = 30
_64_BITS = 2**64 - 1

pytestmark = pytest.mark.timeout(120)


@pytest.fixture(scope="module")
def distant(able: None) -> Iterator[DistantCluster]:  # noqa: ARG001 -- must come first
    """Yield two hosts that are reached only through the relay."""
    support.require_tool("gcc")
    with DistantCluster(2) as cluster:
        cluster.shape(100, burst_bytes=SINGLE_BURST_BYTES, queue_bytes=4 << 20)
        yield cluster


def draws(seed: int) -> Iterator[float]:
    """Yield the numbers of support/prng.h, from 0 to 1."""
    state = seed
    while True:
        state = (state + 0x9E3779B97F4A7C15) & _64_BITS
        mixed = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9 & _64_BITS
        mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EB & _64_BITS
        yield ((mixed ^ (mixed >> 31)) >> 32) / 2**32


def survivors(distance: Distance, host: int) -> Iterator[bool]:
    """Yield whether each datagram to a host passes, by Gilbert's model."""
    loss, period = distance.loss, distance.loss_period
    chance = loss
    for drawn in draws(distance.seed + host):
        lost = drawn < chance
        yield not lost
        if period > 1:
            chance = 1 - 1 / period if lost else loss / (1 - loss) / period


def cross(
    cluster: DistantCluster, distance: Distance, count: int, arriving: int
) -> tuple[float, list[int], Crossing]:
    """Send `count` datagrams from host 0 to host 1, where so many arrive.

    Returns the seconds until the first answer, what arrived, and the counts.
    """
    source, target = cluster.hosts
    here = [sys.executable, str(PROGRAM)]
    with (
        cluster.apart(distance) as crossing,
        subprocess.Popen(
            [*target.enter(), *here, "receive", address(1), str(arriving)],
            stdout=subprocess.PIPE,
            text=True,
        ) as receiver,
    ):
        assert receiver.stdout is not None
        port = receiver.stdout.readline().strip()
        words = [*source.enter(), *here, "send", address(1), port, str(count)]
        answered_s = float(support.run(words, limit_s=90))
        arrived = list(map(int, receiver.stdout.read().split()))
    return answered_s, arrived, crossing


def test_delay(distant: DistantCluster) -> None:
    """No answer comes before a round trip is over."""
    answered_s, _, crossing = cross(distant, Distance(ROUND_TRIP_MS), 1, 1)
    assert answered_s >= ROUND_TRIP_MS / 1000
    assert [each.drawn for each in crossing.hosts] == [1, 1]


@pytest.mark.parametrize("period", [1, 10])
def test_losses(distant: DistantCluster, seed: int, period: int) -> None:
    """Exactly those datagrams are lost that the seed says, and the order stays."""
    distance = Distance(ROUND_TRIP_MS, 0.05, period, seed % 2**32)
    fate = survivors(distance, 1)
    passing = [number for number in range(TOTAL) if next(fate)]
    _, arrived, crossing = cross(distant, distance, TOTAL, len(passing))
    assert arrived == passing
    counted = crossing.hosts[1]
    assert (counted.drawn, counted.lost) == (TOTAL, TOTAL - len(passing))
    assert counted.overflowed == counted.trains == 0


@pytest.mark.parametrize("collective", ["message", "Bcast"])
def test_measurements(distant: DistantCluster, collective: str) -> None:
    """The benchmark measures what it should, and no operation beats the distance."""
    case = Case(collective, 2, 64 << 10, 100, Distance(ROUND_TRIP_MS, 0.02))
    found = contenders()["reno" if collective == "message" else "repeat"]
    measured = measure(distant, case, found, 5)
    assert len(measured.seconds) == 5
    assert min(measured.seconds) >= ROUND_TRIP_MS / 2000
    assert measured.wrong_bytes == 0
    assert measured.lost["frames"] > 0
    assert measured.network.round_trip_ms == ROUND_TRIP_MS


def test_operations(distant: DistantCluster, tmp_path: Path) -> None:
    """Allgathers over a long link that loses much are right."""
    distance = Distance(ROUND_TRIP_MS, 0.02, 3)
    with (
        distant.apart(distance) as crossing,
        Job(distant, 2, tmp_path, sizes=[64 << 10, 1 << 20], repeat=3) as job,
    ):
        stats = summed_stats(job.results(90))
    assert stats["rx_repaired_chunks"] > 0
    assert sum(each.lost for each in crossing.hosts) > 0
    assert sum(each.overflowed for each in crossing.hosts) == 0
