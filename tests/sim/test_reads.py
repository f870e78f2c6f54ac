# SPDX-License-Identifier: BSD-3-Clause
"""Reads of lost chunks from a neighbour's memory, in the simulator."""

from __future__ import annotations

import pytest
from simulated import CONTROL, MS, READ, REPAIR, run, total

# With this many ranks or more, the tests use smaller blocks, so that runs stay short.
MANY_RANKS = 64


@pytest.mark.parametrize("loss", [0.01, 0.05, 0.2])
@pytest.mark.parametrize("nranks", [2, 3, 4, 7, 8, 64, 188])
def test_reads_fetch_what_was_lost(nranks: int, loss: float) -> None:
    """If only multicast is lost, each lost chunk is read once, and no other is read."""
    result = run(
        nranks=nranks,
        block_bytes=400_000 if nranks < MANY_RANKS else 65536,
        nops=2,
        repair=READ,
        fault=f"loss={loss},kind=multicast",
    )
    lost, read = total(result, "lost_chunks"), total(result, "read_chunks")
    assert read > 0
    if nranks < MANY_RANKS:
        assert read == lost
    else:  # A few were declared lost, and arrived before they were read.
        assert 0.99 * lost < read <= lost
    assert total(result, "repaired_chunks") == read
    assert total(result, "duplicate_chunks") == 0
    assert all(rank["rx"]["datagrams"][REPAIR] == 0 for rank in result["ranks"])


def test_few_reads_on_a_disorderly_network() -> None:
    """At most a tenth more chunks are read than are lost or arrive twice.

    The network loses, reorders, duplicates and delays chunks.
    """
    for seed in range(20):
        result = run(
            nranks=4,
            block_bytes=400_000,
            nops=3,
            repair=READ,
            seed=seed,
            jitter_ns=20_000,
            duplicate_ppm=20_000,
            fault="loss=0.05,reorder=0.05,dup=0.02,kind=multicast",
        )
        read = total(result, "read_chunks")
        most = total(result, "lost_chunks") + total(result, "duplicate_chunks")
        assert 0 < read <= 1.1 * most


def test_policy_read_costs_one_message() -> None:
    """Without loss, a rank sends ceil(log2 P) messages, and one more for the release.

    The last message says that it no longer needs its left neighbour's memory.
    """
    for nranks, rounds in ((2, 1), (3, 2), (4, 2), (8, 3)):
        result = run(nranks=nranks, block_bytes=20_000, repair=READ)
        sent = sum(rank["tx"]["datagrams"][CONTROL] for rank in result["ranks"])
        assert sent == nranks * (rounds + 1)
        assert total(result, "reads") == 0


def test_a_late_repairer_is_read_when_it_comes() -> None:
    """A left neighbour that enters 1 s late is read as soon as it has entered."""
    result = run(
        nranks=4,
        block_bytes=400_000,
        repair=READ,
        delayed_rank=1,
        delay_ns=1_000 * MS,
        fault="loss=0.05,kind=multicast",
    )
    assert total(result, "read_chunks") == total(result, "lost_chunks") > 0
    assert result["time_ns"] < 1_010 * MS


@pytest.mark.parametrize("registrations", range(4))
def test_memory_that_cannot_be_registered(registrations: int) -> None:
    """If a rank cannot register memory for reads, it sends lost chunks as repairs.

    Ranks 1 and 3 can register `registrations` pieces of memory at a time, and need 3.
    """
    result = run(
        nranks=5,
        block_bytes=400_000,
        nops=3,
        repair=READ,
        tight_ranks=0b01010,
        registrations=registrations,
        fault="loss=0.05,kind=multicast",
    )
    sent = sum(rank["tx"]["datagrams"][REPAIR] for rank in result["ranks"])
    assert total(result, "failed_reads") == 0
    assert total(result, "read_chunks") > 0
    assert (sent > 0) == (registrations < 3)


def test_a_repairer_that_fails_while_it_is_read() -> None:
    """Rank 2 discards what it reads after rank 1 has given up its buffers.

    Rank 1 cancels its operation. Rank 2, which reads rank 1's memory, hears of it late.
    """
    failed = failed_reads = 0
    for seed in range(100):
        result = run(
            nranks=4,
            block_bytes=2_000_000,
            repair=READ,
            seed=seed,
            link_mbits=10_000,
            latency_ns=2_000,
            cancelling_rank=1,
            cancel_ns=MS + seed * 7_919_000 % (10 * MS),
            fault="loss=0.8,kind=control,rank=2;loss=0.3,kind=multicast",
        )
        failed += total(result, "failed_ops")
        failed_reads += total(result, "failed_reads")
    assert failed > 0
    assert failed_reads > 0


@pytest.mark.parametrize("dead_ns", range(0, 4 * MS, MS // 4))
def test_a_repairer_that_dies_while_it_is_read(dead_ns: int) -> None:
    """If a rank dies while its memory is read, every rank that lacks data fails."""
    result = run(
        nranks=5,
        block_bytes=2 << 20,
        repair=READ,
        dead_rank=1,
        dead_ns=dead_ns,
        timeout_ns=2_000 * MS,
        fault="loss=0.1,kind=multicast",
    )
    for index, rank in enumerate(result["ranks"]):
        assert index == 1 or rank["error"] < 0 or rank["done_ops"] == 1
