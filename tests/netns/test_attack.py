# SPDX-License-Identifier: BSD-3-Clause
"""What a host on the switch that has no part in a job can do to it.

Without protection it changes results and ends jobs: these tests prove that the attacker
of attacker.py is one. With protection it changes nothing, and each of its datagrams is
counted under its cause.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from attack import NRANKS, Arrivals, attacked
from forgeries import FLOODS, OPEN, SEGMENTS, WITHSTOOD

from bench.testbed.cluster import Cluster

# The values of PROTECT that tests try.
MODES = ("off",)

# The counters of datagrams that no rank has sent, by cause; and of those that look like
# a rank's, but change nothing.
CAUSES = ("rx_foreign_datagrams", "rx_corrupt_datagrams")
USELESS = ("rx_duplicate_chunks", "rx_parked_datagrams", "rx_unparked_datagrams")

# How many datagrams all forgeries send together, and how many each that is no flood.
NALL, NALL_LONG = 10**6, 10**7
NFORGED, NFORGED_LONG = 3000, 100_000

# How often the attacker tries what depends on the moment at which it comes, and for how
# long the ranks then compute between operations.
ATTEMPTS = 50
PAUSE_S = 0.02

pytestmark = pytest.mark.timeout(120)


@pytest.fixture(scope="module")
def cluster(able: None) -> Iterator[Cluster]:  # noqa: ARG001 -- must come first
    """Yield hosts of the job and, as the last one, the attacker's.

    They are not those of other tests, since the switch takes the attacker for a router.
    """
    with Cluster(NRANKS + 1) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def arrivals(cluster: Cluster) -> Arrivals:
    """Return the counts of what arrives of the attack."""
    return Arrivals(cluster)


def test_payload_is_forged_without_protection(
    cluster: Cluster, tmp_path: Path, seed: int
) -> None:
    """Chunks that the attacker makes replace those of ranks, and nobody is told.

    They come while the ranks compute, before the operation to which they belong.
    """
    with attacked(cluster, tmp_path, seed, PAUSE_S) as (job, attacker):
        for _ in range(ATTEMPTS):
            attacker.send("other_payload", 2000)
            seen = job.ask()
            if any(each["wrong"] for each in seen):
                break
        assert any(each["wrong"] for each in seen)
        job.stop()


def test_failure_is_forged_without_protection(
    cluster: Cluster, tmp_path: Path, seed: int
) -> None:
    """A record that the attacker makes ends the job."""
    with attacked(cluster, tmp_path, seed) as (job, attacker):
        for _ in range(ATTEMPTS):
            attacker.send("failed", 200)
            if job.failures():
                break
        assert job.failures()


def plan(mode: str, long: bool) -> dict[str, int]:
    """Return how many datagrams of each forgery to send under a value of PROTECT."""
    nforged = NFORGED_LONG if long else NFORGED
    forged = [*WITHSTOOD, *(OPEN if mode != "off" else ())]
    nfloods = (NALL_LONG if long else NALL) // len(MODES) - nforged * len(forged)
    floods = dict.fromkeys(FLOODS, nfloods // len(FLOODS) + 1)
    return dict.fromkeys(forged, nforged) | floods


def summed(seen: Mapping[str, Any], names: tuple[str, ...]) -> int:
    """Return the sum of some counters of a rank."""
    return sum(seen["stats"].get(name, 0) for name in names)


@pytest.mark.parametrize("mode", MODES)
def test_attack_is_withstood(
    arrivals: Arrivals, tmp_path: Path, mode: str, long: bool, seed: int
) -> None:
    """While the attacker sends, every byte is right, and no rank fails.

    What arrives of the attack is counted by its cause, or was dropped by the kernel.
    """
    with attacked(arrivals.cluster, tmp_path, seed) as (job, attacker):
        for name, count in plan(mode, long).items():
            before = job.ask(), arrivals.counts(), arrivals.dropped()
            said = attacker.send(name, count)
            assert not job.failures(), name
            after = job.ask(), arrivals.counts(), arrivals.dropped()
            assert sum(said["sent"].values()) >= count, name
            print(f"{mode} {name}: {count} in {said['seconds']:.2f} s", end="; ")
            for rank in range(NRANKS):
                old, new = before[0][rank], after[0][rank]
                assert new["wrong"] == [], name
                arrived, dropped = (
                    (now[rank] - then[rank]) * (SEGMENTS if name in FLOODS else 1)
                    for then, now in zip(before[1:], after[1:], strict=True)
                )
                caused = summed(new, CAUSES) - summed(old, CAUSES)
                useless = summed(new, USELESS) - summed(old, USELESS)
                print(f"{arrived=} {dropped=} {caused=} {useless=}", end=" ")
                assert caused <= arrived, name
                assert caused + useless + dropped >= arrived, name
            worst_s = max(each["worst_s"] for each in after[0])
            print(f"worst {1e3 * worst_s:.1f} ms")
        job.stop()
