# SPDX-License-Identifier: BSD-3-Clause
"""The costs of operations on many ranks, if hosts stall or networks fail."""

from __future__ import annotations

import pytest
from simulated import CONTROL, MS, MULTICAST, POLICIES, REPAIR, run, total

from mpimcast.cli.sim import simulator as sim

KIB = 1024
CHUNK_BYTES = 1456  # what a frame of 1514 bytes carries
# As the rank that stalls, this means all ranks, each at different times.
ALL_RANKS = 2**32 - 1


def time_ns(result: sim.Plain) -> int:
    """Return how long a run took, in nanoseconds of virtual time."""
    return int(result["time_ns"])


def link_ns(nranks: int, block_bytes: int, link_mbits: int) -> float:
    """Return how long a link takes to carry all other ranks' blocks without headers."""
    return (nranks - 1) * block_bytes * 8000 / link_mbits


def control_datagrams(result: sim.Plain) -> list[int]:
    """Return how many control datagrams each rank sent."""
    return [rank["tx"]["datagrams"][CONTROL] for rank in result["ranks"]]


def repair_bytes(result: sim.Plain) -> int:
    """Return how many bytes ranks sent again, by multicast or unicast."""
    return sum(rank["tx"]["bytes"][REPAIR] for rank in result["ranks"])


def overflowed(result: sim.Plain) -> int:
    """Return how many datagrams were lost because a switch port's queue was full."""
    return sum(int(link["overflowed_datagrams"]) for link in result["links"])


def run_stalls(buffer_bytes: int, seed: int) -> sim.Plain:
    """Run 64 ranks, each of which stands still for 4 ms of every 100.

    Hosts have receive buffers of `buffer_bytes`. A switch port's queue holds hardly
    more than the windows of all senders.
    """
    return run(
        nranks=64,
        block_bytes=256 * KIB,
        chunk_bytes=CHUNK_BYTES,
        link_mbits=1000,
        buffer_bytes=buffer_bytes,
        queue_bytes=max(2 * buffer_bytes, 512 * KIB),
        stalled_rank=ALL_RANKS,
        stall_ns=4 * MS,
        stall_period_ns=100 * MS,
        seed=seed,
    )


@pytest.mark.parametrize("seed", range(1, 7))
def test_stalls_that_buffers_hold(seed: int) -> None:
    """If buffers hold all that arrives during a stall, nothing is sent twice.

    The operation takes at most a quarter longer than the link needs.
    """
    result = run_stalls(640_000, seed)
    assert total(result, "overrun_datagrams") == overflowed(result) == 0
    assert repair_bytes(result) == 0
    assert time_ns(result) <= 1.25 * link_ns(64, 256 * KIB, 1000)


@pytest.mark.parametrize("seed", range(1, 7))
def test_stalls_that_overflow_buffers(seed: int) -> None:
    """If buffers have the kernel's default size, chunks that overflow are repaired.

    Other ranks go on, each block is multicast once, and few repairs are unneeded.
    """
    result = run_stalls(212_992, seed)
    nchunks = -(-256 * KIB // CHUNK_BYTES)
    for rank in result["ranks"]:
        assert rank["tx"]["datagrams"][MULTICAST] == nchunks
    overrun = total(result, "overrun_datagrams")
    assert overflowed(result) < overrun / 50
    assert 0 < total(result, "lost_chunks") <= overrun + overflowed(result)
    sent_again = sum(rank["tx"]["datagrams"][REPAIR] for rank in result["ranks"])
    assert sent_again <= 1.3 * total(result, "lost_chunks")
    assert time_ns(result) <= 1.6 * link_ns(64, 256 * KIB, 1000)


@pytest.mark.parametrize("repair", POLICIES)
@pytest.mark.parametrize("jitter_ns", [20_000, 40_000])
def test_jitter_is_no_loss(jitter_ns: int, repair: int) -> None:
    """Chunks that are up to 40 us late are not declared lost."""
    result = run(
        nranks=8,
        block_bytes=4096 * KIB,
        link_mbits=10_000,
        jitter_ns=jitter_ns,
        repair=repair,
    )
    assert repair_bytes(result) == 0
    assert total(result, "lost_chunks") == total(result, "reads") == 0


@pytest.mark.parametrize(("nranks", "kib"), [(64, 256), (128, 64)])
def test_first_operation_repeats_nothing(nranks: int, kib: int) -> None:
    """The first operation needs no repair, though no rank knows the rate yet.

    Each rank sends at most 40 control messages.
    """
    result = run(
        nranks=nranks, block_bytes=kib * KIB, chunk_bytes=CHUNK_BYTES, link_mbits=1000
    )
    assert max(control_datagrams(result)) <= 40
    assert repair_bytes(result) == 0
    assert time_ns(result) <= 1.10 * link_ns(nranks, kib * KIB, 1000)


def test_188_healthy() -> None:
    """An operation on the paper's 188 ranks takes at most 1.1 times the link's time."""
    result = run(nranks=188, block_bytes=64 * KIB, link_mbits=10_000)
    assert repair_bytes(result) == 0
    assert time_ns(result) <= 1.10 * link_ns(188, 64 * KIB, 10_000)


@pytest.mark.parametrize(
    ("nranks", "kib", "seed"),
    [
        (188, 64, 1),
        *(pytest.param(188, 64, seed, marks=pytest.mark.long) for seed in range(2, 9)),
        (1024, 16, 1),
    ],
)
def test_many_with_loss(nranks: int, kib: int, seed: int) -> None:
    """With 0.1 % loss, an operation takes at most 1.2 times the link's time."""
    result = run(
        nranks=nranks,
        block_bytes=kib * KIB,
        link_mbits=10_000,
        loss_ppm=1000,
        seed=seed,
    )
    assert time_ns(result) <= 1.20 * link_ns(nranks, kib * KIB, 10_000)
    assert result["figures"]["repair_chunks"] <= 1.05 * total(result, "lost_chunks")


@pytest.mark.parametrize("seed", range(1, 4))
@pytest.mark.parametrize(("nranks", "kib", "outage_ms"), [(64, 16, 10), (119, 27, 30)])
def test_a_short_outage_of_multicast(
    nranks: int, kib: int, outage_ms: int, seed: int
) -> None:
    """After an outage of multicast, an operation ends within 6 times the link's time.

    That requires repairs by multicast: all ranks lack the same chunks, and sending them
    to each rank separately would take longer.
    """
    result = run(
        nranks=nranks,
        block_bytes=kib * KIB,
        chunk_bytes=CHUNK_BYTES,
        eager_bytes=0,
        link_mbits=1000,
        trunk_mbits=1000,
        nswitches=3,
        outage=1,  # of multicast
        outage_ns=200,
        outage_end_ns=outage_ms * MS,
        seed=seed,
    )
    link_time_ns = link_ns(nranks, kib * KIB, 1000)
    assert time_ns(result) <= outage_ms * MS + 6 * link_time_ns


@pytest.mark.parametrize("seed", range(1, 5))
@pytest.mark.parametrize(
    ("nranks", "kib", "times"), [(3, 2048, 1.09), (4, 4096, 1.065), (8, 1024, 1.065)]
)
def test_senders_keep_abreast(nranks: int, kib: int, times: float, seed: int) -> None:
    """A sender that gets ahead does not take the links from the others.

    Each rank stands still for a tenth of the time, at different times. Headers alone
    make an operation last 1.04 times as long as a link takes for the payload.
    """
    result = run(
        nranks=nranks,
        block_bytes=kib * KIB,
        chunk_bytes=CHUNK_BYTES,
        link_mbits=200,
        buffer_bytes=8 << 20,
        queue_bytes=512 * KIB,
        window_bytes=384 * KIB,
        stalled_rank=ALL_RANKS,
        stall_ns=2 * MS,
        stall_period_ns=20 * MS,
        seed=seed,
    )
    assert overflowed(result) == 0
    assert time_ns(result) <= times * link_ns(nranks, kib * KIB, 200)


@pytest.mark.parametrize("seed", range(1, 5))
def test_lost_reports_hold_up_no_sender(seed: int) -> None:
    """With 1 % loss, even of reports, an operation takes at most 1.2 times the link's.

    A sender whose window is full waits for reports.
    """
    result = run(
        nranks=8,
        block_bytes=4096 * KIB,
        link_mbits=10_000,
        loss_ppm=10_000,
        seed=seed,
    )
    assert time_ns(result) <= 1.2 * link_ns(8, 4096 * KIB, 10_000)


# The number of ranks; a bit for each rank that hears no multicast; the outage in ms.
OUTAGES = [
    *((3, 0b100, 50), (8, 0xFF, 50), (66, 1 << 39, 50)),
    *((3, 0b100, 2000), (8, 0xFF, 2000)),
]


@pytest.mark.parametrize("repair", POLICIES)
@pytest.mark.parametrize(("nranks", "deaf", "outage_ms"), OUTAGES)
def test_multicast_comes_back(
    nranks: int, deaf: int, outage_ms: int, repair: int
) -> None:
    """Operations are multicast again within 1 s of the end of an outage."""
    nops, gap_ms = (150, 2) if outage_ms == 50 else (400, 20)
    chunk_bytes, nchunks = 2048, 16
    result = run(
        nranks=nranks,
        block_bytes=chunk_bytes * nchunks,
        chunk_bytes=chunk_bytes,
        nops=nops,
        gap_spread_ns=gap_ms * MS,
        repair=repair,
        deaf_ranks=deaf,
        deaf_ns=5 * MS,
        deaf_end_ns=(5 + outage_ms) * MS,
    )
    # Operations go by unicast for at most this long. At intervals that double, one
    # operation is multicast, to find out whether multicast works again.
    longest_ms = 160 if outage_ms == 50 else outage_ms + 1000
    assert time_ns(result) > longest_ms * MS
    share = longest_ms * MS / time_ns(result)
    for rank in result["ranks"]:
        nmulticast = rank["tx"]["datagrams"][MULTICAST] // nchunks
        assert nops > nmulticast >= (1 - share) * nops - 3
        assert rank["busy_ns"] <= 30 * MS


@pytest.mark.parametrize(("nranks", "kib"), [(8, 256), (17, 64)])
@pytest.mark.parametrize("queue_bytes", [200_000, 300_000])
def test_windows_adapt_to_short_queues(nranks: int, kib: int, queue_bytes: int) -> None:
    """If windows adapt, fewer than 1 % of chunks overflow the switch's short queues.

    60 operations take at most 1.3 times the link's time.
    """
    nops = 60
    result = run(
        nranks=nranks,
        block_bytes=kib * KIB,
        chunk_bytes=CHUNK_BYTES,
        nops=nops,
        link_mbits=1000,
        queue_bytes=queue_bytes,
        adaptive=1,
    )
    nchunks = nops * nranks * (nranks - 1) * -(-kib * KIB // CHUNK_BYTES)
    assert 0 < overflowed(result) < nchunks / 100
    assert time_ns(result) <= 1.3 * nops * link_ns(nranks, kib * KIB, 1000)


@pytest.mark.parametrize("nranks", [200, 400])
def test_a_straggler_is_asked_by_few(nranks: int) -> None:
    """Each rank sends at most one message to a rank that stands still for 300 ms.

    The others ask about it along the tree of reports. All end within 25 ms of its
    return.
    """
    straggler = nranks // 3
    spec = {"nranks": nranks, "block_bytes": 32 * KIB, "link_mbits": 10_000}
    still_ns = time_ns(run(**spec)) // 3
    result = run(
        **spec,
        stalled_rank=straggler,
        stall_begin_ns=still_ns,
        stall_ns=300 * MS,
        stall_period_ns=1000 * MS,
    )
    assert result["ranks"][straggler]["rx"]["datagrams"][CONTROL] <= nranks
    assert time_ns(result) <= still_ns + 325 * MS
