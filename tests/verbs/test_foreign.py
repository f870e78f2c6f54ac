# SPDX-License-Identifier: BSD-3-Clause
"""Datagrams from outside a job are dropped and counted, and jobs do not mix."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
import support
from ranks import CHUNK, KEYED, PROGRAM, VARIABLES, gather, job
from results import read, total

from bench.guest.guest import Guest

NRANKS = 4
SOURCE = 0  # the rank whose datagrams are forged
BEGIN, END = 3, 60
GROUP = 0xEF_C0_12_00  # 239.192.18.0

DROPPED = (
    "rx_foreign_datagrams",
    "rx_corrupt_datagrams",
    "rx_duplicate_chunks",
    "rx_unparked_datagrams",
)

# The stranger has to hear a rank before it can forge its datagrams.
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
    """Datagrams with a wrong field, and replays, change no byte and are counted."""
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
        sizes=[5 * CHUNK],
        repeat=END + 10,
        # The header's checksum would find every change before the other checks do.
        settings={"checksum": "off"},
        mishaps=[{"what": "meet", "rank": 0, "op": op} for op in (BEGIN, END)],
    )
    (said,) = guest.work.glob("*/sent")
    sent = json.loads(said.read_text())
    assert sum(sent.values()) == count
    unknown = sent["own_address"] + sent["other_queue"]
    for rank, result in results.items():
        stats = result["stats"]
        counted = sum(stats[name] for name in DROPPED)
        # A rank takes forgeries that bear its own address for copies of its own.
        expected = unknown if rank == SOURCE else count - sent["other_key"]
        assert counted >= 0.99 * expected, f"{sent} {stats}"
        assert stats["rx_foreign_datagrams"] >= 0.99 * unknown, f"{sent} {stats}"


@pytest.mark.parametrize(
    "same_group", [True, pytest.param(False, marks=pytest.mark.long)]
)
def test_two_jobs(guest: Guest, same_group: bool) -> None:
    """Two jobs on the same devices, even in the same group, do not hear each other."""
    jobs = [
        job(
            guest,
            3,
            program=KEYED if same_group else PROGRAM,
            sizes=[1, CHUNK, 100_000],
            repeat=5,
            settings={"subgroups": 2},
        )
        for _ in range(2)
    ]
    script = "\n".join(
        f"GROUP={GROUP:#x} QKEY={number} {shlex.join(map(str, command))} &"
        for number, (_, command) in enumerate(jobs, start=1)
    )
    status, said = guest.run_unchecked(
        ["sh", "-c", f"{script}\nwait"], limit_s=60, cwd=support.ROOT, **VARIABLES
    )
    for folder, _ in jobs:
        results = read(folder, range(3), why=f"{status}\n{said}")
        assert total(results, "rx_foreign_datagrams") == 0
        assert results[0]["explained"].startswith("verbs: ")
