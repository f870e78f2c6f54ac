# SPDX-License-Identifier: BSD-3-Clause
"""Bcast and Allgatherv in the simulator: their costs, and that results are right."""

from __future__ import annotations

import pytest
from simulated import (
    CONTROL,
    HEADER_BYTES,
    MS,
    MULTICAST,
    NAK,
    POLICIES,
    READ,
    REPAIR,
    run,
    total,
)

from mpimcast.cli.sim import simulator as sim
from mpimcast.errors import ConfigError

# The values of a spec's field `kind`; with ANY, each operation draws its kind.
ANY, ALLGATHER, ALLGATHERV, BCAST = range(4)

SMALL_BYTES = 64
MAX_PART_BYTES = 960  # of blocks in a datagram of the barrier
MAX_CARRIED_BYTES = 19_200  # of blocks in a round of it


@pytest.mark.parametrize("repair", POLICIES)
@pytest.mark.parametrize(("nranks", "root"), [(2, 1), (3, 0), (7, 6), (16, 5), (65, 9)])
def test_only_the_root_sends(nranks: int, root: int, repair: int) -> None:
    """Without loss a Bcast's root multicasts its bytes once, and no rank repairs."""
    result = run(nranks=nranks, kind=BCAST, root=root, block_bytes=65536, repair=repair)
    for index, rank in enumerate(result["ranks"]):
        sent = rank["tx"]
        chunks = 16 if index == root else 0
        assert sent["datagrams"][MULTICAST] == chunks
        assert sent["bytes"][MULTICAST] == chunks * (4096 + HEADER_BYTES)
        assert sent["datagrams"][REPAIR] == 0
        assert rank["lost_chunks"] == 0


def test_small_bcast_costs_a_barrier() -> None:
    """A small Bcast takes ceil(log2 P) messages of each rank, and a chunk in all."""
    for nranks, rounds in ((2, 1), (3, 2), (8, 3), (64, 6)):
        result = run(nranks=nranks, kind=BCAST, root=1, block_bytes=1000)
        sent = [rank["tx"]["datagrams"] for rank in result["ranks"]]
        assert [kinds[CONTROL] for kinds in sent] == [rounds] * nranks
        assert sum(kinds[MULTICAST] for kinds in sent) == 1


@pytest.mark.parametrize("block_bytes", [20_000, 50_000])
@pytest.mark.parametrize("kind", [ALLGATHER, ALLGATHERV, BCAST])
@pytest.mark.parametrize("repair", [NAK, READ])
def test_a_loop_costs_one_barrier_each(
    kind: int, block_bytes: int, repair: int
) -> None:
    """In a loop, each operation costs a rank one barrier: ceil(log2 P) messages.

    An operation's entry barrier is the release barrier of the operation before it.
    With `read` there is one more message: a rank waits until its right neighbour, which
    may still read its memory, says that it is done.
    """
    nops = 20
    for nranks, rounds in ((2, 1), (3, 2), (8, 3), (17, 5)):
        result = run(
            nranks=nranks, kind=kind, block_bytes=block_bytes, nops=nops, repair=repair
        )
        sent = [rank["tx"]["datagrams"][CONTROL] for rank in result["ranks"]]
        assert sent == [nops * (rounds + (repair == READ))] * nranks


@pytest.mark.parametrize("repair", POLICIES)
@pytest.mark.parametrize("nranks", [2, 3, 5, 8, 17, 31])
def test_a_barrier_carries_small_blocks(nranks: int, repair: int) -> None:
    """An Allgather of small blocks costs ceil(log2 P) messages a rank, and no chunk."""
    nops = 6
    result = run(
        nranks=nranks,
        kind=ALLGATHER,
        block_bytes=MAX_PART_BYTES // nranks,
        nops=nops,
        repair=repair,
    )
    for rank in result["ranks"]:
        rounds = (nranks - 1).bit_length()
        assert rank["tx"]["datagrams"] == [0, nops * rounds, 0]


def test_the_largest_blocks_that_a_barrier_carries() -> None:
    """A round has 19,200 bytes of blocks at most; those with one more are multicast."""
    for nranks, most in ((2, 1), (3, 1), (5, 2), (8, 4), (24, 8), (31, 15)):
        for more in (0, 1):
            nbytes = MAX_CARRIED_BYTES // most + more
            result = run(nranks=nranks, kind=ALLGATHER, block_bytes=nbytes)
            for rank in result["ranks"]:
                assert (rank["tx"]["datagrams"][MULTICAST] > 0) == bool(more)


@pytest.mark.parametrize("repair", POLICIES)
@pytest.mark.parametrize("nranks", [2, 3, 8, 17])
def test_three_of_four_small_bcasts_are_one_message(nranks: int, repair: int) -> None:
    """Of a loop of small Bcasts each fourth has a barrier, the others one multicast."""
    nops, root = 20, 1
    result = run(
        nranks=nranks,
        kind=BCAST,
        root=root,
        block_bytes=SMALL_BYTES,
        nops=nops,
        repair=repair,
    )
    whole = nops // 4
    barrier = (nranks - 1).bit_length() + (repair != NAK)
    for index, rank in enumerate(result["ranks"]):
        sent = rank["tx"]["datagrams"]
        is_root = index == root
        assert sent[CONTROL] == whole * barrier + is_root * (nops - whole)
        assert sent[MULTICAST] == is_root * whole


@pytest.mark.parametrize("kind", [ALLGATHER, BCAST])
@pytest.mark.parametrize("nranks", [2, 3, 7, 16, 33])
def test_carried_blocks_survive_loss(nranks: int, kind: int) -> None:
    """Half of all messages are lost, some come twice or late; all get all blocks."""
    run(
        nranks=nranks,
        kind=kind,
        root=nranks // 2,
        block_bytes=SMALL_BYTES // 8,
        nops=12,
        loss_ppm=500_000,
        duplicate_ppm=50_000,
        jitter_ns=100_000,
    )


def test_latency_of_a_small_bcast(capsys: pytest.CaptureFixture[str]) -> None:
    """Per barrier round, a small Bcast takes less than 1.3 times as long as on 2 ranks.

    The test prints the latency for 2 to 1024 ranks.
    """
    one_way_us = run(nranks=2, kind=BCAST, root=0, block_bytes=8)["time_ns"] / 1000
    lines = []
    for bits in range(1, 11):
        times_us = [
            run(nranks=2**bits, kind=BCAST, root=0, block_bytes=nbytes)["time_ns"]
            / 1000
            for nbytes in (8, 1024)
        ]
        assert max(times_us) < 1.3 * bits * one_way_us
        lines.append(f"{2**bits:5}  {times_us[0]:6.1f} us  {times_us[1]:6.1f} us")
    with capsys.disabled():
        print("\nranks      8 bytes  1024 bytes", *lines, sep="\n")


@pytest.mark.parametrize("repair", POLICIES)
def test_a_large_bcast_takes_the_links_time(repair: int) -> None:
    """A Bcast of 4 MiB on 2 to 64 ranks takes at most 1.25 times the link's time."""
    nbytes, link_mbits = 4 << 20, 100_000
    for nranks in (2, 8, 64):
        result = run(
            nranks=nranks, kind=BCAST, root=1, block_bytes=nbytes, repair=repair
        )
        assert result["time_ns"] < 1.25 * nbytes * 8000 / link_mbits


def test_loss_is_spread_round_the_ring() -> None:
    """With `read`, each rank reads its lost chunks from its left neighbour.

    So the root sends no chunk again.
    """
    result = run(
        nranks=16,
        kind=BCAST,
        root=3,
        block_bytes=1 << 20,
        repair=READ,
        fault="loss=0.05,kind=multicast",
    )
    assert total(result, "read_chunks") == total(result, "lost_chunks") > 0
    assert total(result, "repaired_chunks") == total(result, "lost_chunks")
    assert all(rank["tx"]["datagrams"][REPAIR] == 0 for rank in result["ranks"])


@pytest.mark.parametrize("nranks", [2, 5])
def test_a_bcast_is_not_copied(nranks: int) -> None:
    """With zero-copy receive, devices put the chunks of a Bcast in their places.

    The copied chunks are at most twice as many as the receives posted before it.
    """
    nchunks, receives = 200, 24
    result = run(
        nranks=nranks,
        kind=BCAST,
        root=1,
        block_bytes=nchunks * 4096 - 5,
        nops=3,
        subgroups=2,
        repair=READ,
        zero_copy=receives,
    )
    for index, rank in enumerate(result["ranks"]):
        if index != 1:
            placed = rank["zero_copy_chunks"]
            assert 3 * (nchunks - 2 * receives) <= placed <= 3 * nchunks
            assert rank["evacuated_chunks"] == 0


@pytest.mark.parametrize("repair", POLICIES)
def test_uneven_blocks_are_sent_once(repair: int) -> None:
    """In an Allgatherv, no rank multicasts more chunks than it has, or repairs any.

    Each rank draws a block of up to 50,000 bytes, which are 13 chunks.
    """
    for seed in range(20):
        result = run(
            nranks=9,
            kind=ALLGATHERV,
            block_bytes=50_000,
            repair=repair,
            seed=seed,
            chains=seed % 5,
        )
        for rank in result["ranks"]:
            assert rank["tx"]["datagrams"][MULTICAST] <= 13
            assert rank["tx"]["datagrams"][REPAIR] == 0


@pytest.mark.parametrize("kind", [ALLGATHERV, BCAST])
@pytest.mark.parametrize("repair", POLICIES)
def test_multicast_that_dies(kind: int, repair: int) -> None:
    """When two ranks stop hearing multicast, Allgatherv and Bcast still complete."""
    result = run(
        nranks=8,
        kind=kind,
        block_bytes=65536,
        nops=8,
        repair=repair,
        deaf_ranks=0b1010,
        deaf_ns=MS // 10,
    )
    assert total(result, "done_ops") == 64


@pytest.mark.parametrize("kind", [ANY, BCAST])
@pytest.mark.parametrize("dropped", range(9))
@pytest.mark.parametrize("repair", POLICIES)
def test_last_control_datagram_lost(kind: int, dropped: int, repair: int) -> None:
    """One of the last two control messages of each kind may be lost.

    Blocks are too large for ranks to keep copies for repairs.
    """
    for nth in range(2):
        run(
            nranks=5,
            kind=kind,
            block_bytes=2 << 20,
            nops=2,
            window_bytes=400_000,
            loss_ppm=1_000,
            repair=repair,
            drop_kind=dropped,
            drop_nth=nth,
        )


def test_a_late_receiver_holds_back_a_fast_root() -> None:
    """All 40 Bcasts of a root that never waits end soon after a late rank's entry.

    The root can be ahead by at most the number of epochs that a stream may have open.
    """
    result = run(
        nranks=3,
        kind=BCAST,
        root=0,
        block_bytes=100,
        nops=40,
        delayed_rank=2,
        delay_ns=1_000 * MS,
    )
    assert result["time_ns"] < 1_100 * MS
    assert total(result, "done_ops") == 120


def test_impossible_specs_are_refused() -> None:
    """A root that is not a rank is refused, and so is a kind that does not exist."""
    with pytest.raises(ConfigError):
        sim.run({"kind": 4})
    with pytest.raises(ConfigError):
        sim.run({"kind": BCAST, "root": 4})
