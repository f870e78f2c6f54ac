# SPDX-License-Identifier: BSD-3-Clause
"""What a host on the switch that has no part in a job can do to it.

Without protection it changes results and ends jobs: these tests prove that the attacker
of attacker.py is one. With protection it changes nothing, and each of its datagrams is
counted under its cause.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from attack import NRANKS, Arrivals, AttackedJob, attacked
from forgeries import FLOODS, OPEN, SEGMENTS, WITHSTOOD
from job import MPICH, OPENMPI

from bench.testbed.cluster import Cluster
from bench.testbed.launcher import Launcher

# For so long a rank may leave datagrams unread.
SETTLE_S = 10

# The values of PROTECT that tests try.
MODES = ("off", "authenticate", "encrypt")

LAUNCHERS = (
    pytest.param(OPENMPI, id="openmpi"),
    pytest.param(MPICH, id="mpich", marks=pytest.mark.long),
)

# The counters of datagrams that no rank sent, and of those that look like a rank's but
# change nothing.
FORGED, REPLAYED = "rx_forged_datagrams", "rx_replayed_datagrams"
CAUSES = (
    "rx_foreign_datagrams",
    "rx_malformed_datagrams",
    "rx_corrupt_datagrams",
    FORGED,
    REPLAYED,
)
USELESS = ("rx_duplicate_chunks", "rx_parked_datagrams", "rx_unparked_datagrams")

# Under which of these protection counts forgeries that look like ranks' datagrams.
CAUSE = dict.fromkeys(OPEN, FORGED) | {"replays": REPLAYED}

# Some of these name another channel, so that in a flood the kernel drops them.
FILTERED = ("flips",)

# How many datagrams all forgeries of a mode send together, and how many each that is no
# flood. Usually the modes share a million.
NALL, NALL_LONG = 10**6 // len(MODES), 10**7
NFORGED, NFORGED_LONG = 800, 10_000

# So many are enough for a bit of each byte of a chunk, and for each length.
THOROUGH, NTHOROUGH = ("flips", "truncations"), 3000

# How often the attacker tries what depends on the moment at which it comes, and for how
# long the ranks then compute between operations.
ATTEMPTS = 50
PAUSE_S = 0.02

pytestmark = pytest.mark.timeout(300)


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


def test_without_protection(cluster: Cluster, tmp_path: Path, seed: int) -> None:
    """Chunks that the attacker makes replace those of ranks; its record ends the job.

    Nobody is told of the former. They come while the ranks compute, before the
    operation to which they belong.
    """
    with attacked(cluster, tmp_path, seed, protect="off", pause_s=PAUSE_S) as (
        job,
        attacker,
    ):
        for _ in range(ATTEMPTS):
            attacker.send("other_payload", 2000)
            seen = job.ask()
            if any(each["wrong"] for each in seen):
                break
        assert any(each["wrong"] for each in seen)
        assert not job.failures()
        for _ in range(ATTEMPTS):
            attacker.send("failed", 200)
            if job.failures():
                break
        assert job.failures()


def plan(mode: str, long: bool) -> dict[str, int]:
    """Return how many datagrams of each forgery to send under a value of PROTECT."""
    nforged = NFORGED_LONG if long else NFORGED
    forged = [*WITHSTOOD, *(OPEN if mode != "off" else ())]
    counts = dict.fromkeys(forged, nforged)
    for name in counts.keys() & THOROUGH:
        counts[name] = max(nforged, NTHOROUGH)
    nfloods = (NALL_LONG if long else NALL) - sum(counts.values())
    return counts | dict.fromkeys(FLOODS, nfloods // len(FLOODS) + 1)


def summed(seen: Mapping[str, Any], *names: str) -> int:
    """Return the sum of counters of a rank."""
    return sum(seen["stats"][name] for name in names)


class Look(NamedTuple):
    """What ranks and kernels have counted until one moment."""

    seen: list[dict[str, Any]]
    arrived: list[int]
    refused: list[int]
    overflowed: list[int]

    @classmethod
    def now(cls, job: AttackedJob, arrivals: Arrivals) -> Look:
        """Look at the counters."""
        return cls(job.ask(), *arrivals.counts())


def check(name: str, mode: str, before: Look, after: Look) -> str:
    """Check what the ranks have counted of a forgery; return that in words.

    Everything that has arrived is counted once, under its cause, unless the kernel has
    dropped it: because a receive buffer was full or, if it does not look like a rank's,
    since a filter refused it. The kernel counts other datagrams that it drops, too.
    """
    words = []
    for rank in range(NRANKS):
        old, new = before.seen[rank], after.seen[rank]
        assert new["wrong"] == [], name
        times = SEGMENTS if name in FLOODS else 1
        arrived, refused, overflowed = (
            times * (now[rank] - then[rank])
            for then, now in zip(before[1:], after[1:], strict=True)
        )
        caused = summed(new, *CAUSES) - summed(old, *CAUSES)
        useless = summed(new, *USELESS) - summed(old, *USELESS)
        words.append(f"{arrived} arrived, {caused} counted, {overflowed} overflowed")
        told = f"{mode}, {name}, rank {rank}: {words[-1]}, {refused=} {useless=}"
        assert caused <= arrived, told
        if mode != "off" and name in CAUSE:
            caused = summed(new, CAUSE[name]) - summed(old, CAUSE[name])
            refused *= name in FILTERED
            assert caused + refused + overflowed >= arrived > 0, told
        else:
            useless *= mode == "off"
            assert caused + useless + refused + overflowed >= arrived > 0, told
    return "; ".join(words)


def settle(
    name: str, mode: str, before: Look, look: Callable[[], Look]
) -> tuple[Look, str]:
    """Look until ranks have taken what has arrived from their sockets, and check it."""
    until_s = time.monotonic() + SETTLE_S
    while True:
        after = look()
        try:
            return after, check(name, mode, before, after)
        except AssertionError:
            if time.monotonic() > until_s:
                raise


@pytest.mark.parametrize("launcher", LAUNCHERS)
@pytest.mark.parametrize("mode", MODES)
def test_attack_is_withstood(
    arrivals: Arrivals,
    tmp_path: Path,
    mode: str,
    launcher: Launcher,
    *,
    long: bool,
    seed: int,
) -> None:
    """While the attacker sends, every byte is right, and no rank fails.

    What arrives of the attack is counted by its cause, or was dropped by the kernel.
    """
    with attacked(
        arrivals.cluster, tmp_path, seed, protect=mode, launcher=launcher
    ) as (job, attacker):
        after = Look.now(job, arrivals)
        for name, count in plan(mode, long).items():
            before = after
            said = attacker.send(name, count)
            assert sum(said["sent"].values()) >= count, name
            after, words = settle(name, mode, before, lambda: Look.now(job, arrivals))
            assert not job.failures(), name
            worst_s = max(each["worst_s"] for each in after.seen)
            print(f"{mode}, {name}: {count} in {said['seconds']:.2f} s: {words}")
            print(f"    the worst operation took {1e3 * worst_s:.1f} ms")
        job.stop()
