# SPDX-License-Identifier: BSD-3-Clause
"""Datagrams from outside a job, such as those of another job, are dropped."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
import support
from ranks import CHUNK_BYTES, KEYED, PROGRAM, VARIABLES, gather, job
from results import read, total

from bench.guest.guest import Guest

NRANKS = 4
SOURCE = 0  # the rank whose datagrams are forged
# Forged datagrams arrive between these operations.
BEGIN, END = 3, 60
GROUP = 0xEF_C0_12_00  # 239.192.18.0

# The counters of datagrams that change nothing, by reason.
DROPPED = (
    "rx_foreign_datagrams",
    "rx_corrupt_datagrams",
    "rx_malformed_datagrams",
    "rx_duplicate_chunks",
    "rx_unparked_datagrams",
)

# A script that runs while the job runs: it starts the stranger when a rank waits before
# operation {begin}, and lets the rank go on when the stranger listens. The stranger
# must hear a rank's datagrams before it can forge any.
STRANGER = """
until test -e reached{begin}; do sleep 0.02; done
{python} {program} . net{device} {source} {count} {seed} >sent & stranger=$!
until test -e listening; do sleep 0.02; done
touch go{begin}
wait $stranger
until test -e reached{end}; do sleep 0.02; done
touch go{end}
"""


@pytest.mark.timeout(300, func_only=True)
def test_forged(guest: Guest, long: bool, seed: int) -> None:
    """Datagrams that are replayed, or wrong in some field, change no byte.

    The ranks count them, except for 1 % that may get lost.
    """
    count = 100_000 if long else 10_000
    stranger = STRANGER.format(
        begin=BEGIN,
        end=END,
        python=support.BIN / "python",
        program=Path(__file__).with_name("stranger.py"),
        device=NRANKS,
        source=f"10.8.0.{SOURCE + 1}",
        count=count,
        seed=seed,
    )
    results = gather(
        guest,
        NRANKS,
        limit_s=250 if long else 90,
        beside=stranger,
        sizes=[5 * CHUNK_BYTES],
        repeat=END + 10,
        # Checksums would find every change, so that nothing else would be tested.
        settings={"checksum": "off"},
        mishaps=[{"what": "meet", "rank": 0, "op": op} for op in (BEGIN, END)],
    )
    (path,) = guest.work.glob("*/sent")
    sent = json.loads(path.read_text())
    assert sum(sent.values()) == count
    unknown = sent["own_address"] + sent["other_queue"]
    for rank, result in results.items():
        stats = result["stats"]
        counted = sum(stats[name] for name in DROPPED)
        # No device delivers the datagrams of other_key to a rank. A rank takes
        # datagrams from its own address for copies of its own, and does not count them.
        expected = unknown if rank == SOURCE else count - sent["other_key"]
        assert counted >= 0.99 * expected, f"{sent} {stats}"
        assert stats["rx_foreign_datagrams"] >= 0.99 * unknown, f"{sent} {stats}"


@pytest.mark.parametrize(
    "same_group", [True, pytest.param(False, marks=pytest.mark.long)]
)
def test_two_jobs(guest: Guest, same_group: bool) -> None:
    """Two jobs run on the same devices, even in the same group with different Q_Keys.

    No rank hears a datagram of the other job.
    """
    jobs = [
        job(
            guest,
            3,
            program=KEYED if same_group else PROGRAM,
            sizes=[1, CHUNK_BYTES, 100_000],
            repeat=5,
            settings={"subgroups": 2},
        )
        for _ in range(2)
    ]
    script = "\n".join(
        f"GROUP={GROUP:#x} QKEY={number} {shlex.join(map(str, command))} &"
        for number, (_, command) in enumerate(jobs, start=1)
    )
    status, output = guest.run_unchecked(
        ["sh", "-c", f"{script}\nwait"], limit_s=60, cwd=support.ROOT, **VARIABLES
    )
    for folder, _ in jobs:
        results = read(folder, range(3), why=f"{status}\n{output}")
        assert total(results, "rx_foreign_datagrams") == 0
        assert results[0]["explained"].startswith("verbs: ")
