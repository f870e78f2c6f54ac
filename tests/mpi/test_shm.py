# SPDX-License-Identifier: BSD-3-Clause
"""Collectives in memory that the ranks of one node share."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gathering import Gathering, gather_and_check, require_two_ranks, started
from mpi4py import MPI

import mpimcast
from mpimcast import Error, Intracomm, TransportError
from mpimcast._native import segment
from mpimcast._session import passing, teams

Make = Callable[..., Intracomm]

# The slots of the first streams of a segment.
SLOT_BYTES = 512 << 10


@pytest.fixture
def comm(make_comm: Make) -> Intracomm:
    """Return a communicator whose ranks share memory."""
    return make_comm(transport="shm", chunk_bytes=0)


def block_of(rank: int, nbytes: int) -> np.ndarray:
    """Return a rank's block of random bytes."""
    return np.random.default_rng((rank, nbytes)).integers(0, 256, nbytes, np.uint8)


def bounds(size: int) -> list[int]:
    """Return sizes of blocks around the bounds of cache lines, pieces and slots."""
    piece = SLOT_BYTES // size // 64 * 64
    around = (64, piece, SLOT_BYTES, 4 * piece, 9 * piece)
    return [0, 1, *(at + more for at in around for more in (-1, 0, 1)), 3 << 20]


def test_allgather(comm: Intracomm) -> None:
    """Blocks of sizes around all bounds arrive, from apart and in place."""
    rank, size = comm.rank, comm.size
    for nbytes in bounds(size):
        blocks = np.stack([block_of(each, nbytes) for each in range(size)])
        place = np.zeros((size, nbytes), np.uint8)
        comm.Allgather(blocks[rank].copy(), place)
        assert np.array_equal(place, blocks), nbytes
        place.fill(0)
        place[rank] = blocks[rank]
        comm.Allgather(MPI.IN_PLACE, place)
        assert np.array_equal(place, blocks), nbytes
    assert comm.stats()["epochs"] == 0
    assert started(comm) == (2 * len(bounds(size)) if size > 1 else 0)


def test_bcast(comm: Intracomm) -> None:
    """The data of each root arrives, whatever its size."""
    for root in range(comm.size):
        for nbytes in bounds(comm.size):
            data = block_of(root, nbytes)
            place = data.copy() if comm.rank == root else np.zeros(nbytes, np.uint8)
            comm.Bcast(place, root)
            assert np.array_equal(place, data), (root, nbytes)


@pytest.mark.parametrize("gap", [0, 5])
@pytest.mark.parametrize(
    "counts",
    [
        lambda size: [*range(1, size), 0],
        lambda size: [0] * size,
        lambda size: [0] * (size - 1) + [5_000_001],
        lambda size: [3_000_001, *[1] * (size - 1)],
        lambda size: [SLOT_BYTES // size + each for each in range(size)],
    ],
    ids=["rising", "nothing", "last", "first", "about a slot"],
)
def test_allgatherv(
    comm: Intracomm, counts: Callable[[int], list[int]], gap: int
) -> None:
    """Blocks of all sizes arrive in their places, and gaps are not touched."""
    sizes = counts(comm.size)
    offsets = [sum(sizes[:rank]) + gap * rank for rank in range(comm.size)]
    expected = np.full(sum(sizes) + gap * comm.size, 0xEE, np.uint8)
    for rank, (begin, nbytes) in enumerate(zip(offsets, sizes, strict=True)):
        expected[begin : begin + nbytes] = block_of(rank, nbytes)
    place = np.full_like(expected, 0xEE)
    mine = block_of(comm.rank, sizes[comm.rank])
    comm.Allgatherv(mine, [place, sizes, offsets, MPI.BYTE])
    assert np.array_equal(place, expected)


def test_many_in_flight(comm: Intracomm, seed: int) -> None:
    """More operations than slots may be under way, and end in any order."""
    comm.Barrier()
    gather_and_check(comm)
    rng = np.random.default_rng((seed, comm.rank))
    gatherings = [Gathering(comm, 7 * each**3, each) for each in range(30)]
    requests = [each.start() for each in gatherings]
    for which in rng.permutation(len(requests)):
        if which % 2:
            requests[which].Wait()
        else:
            while not requests[which].Test():
                pass
        gatherings[which].check()


def test_requests_complete_without_calls(comm: Intracomm) -> None:
    """An operation moves on every rank although no rank calls mpimcast for it.

    The MPI library's Waitall only polls.
    """
    gather_and_check(comm)
    gatherings = [Gathering(comm, 700_000, salt) for salt in range(3)]
    MPI.Request.Waitall([each.start() for each in gatherings])
    for each in gatherings:
        each.check()


def test_without_a_thread(make_comm: Make) -> None:
    """PROGRESS_THREAD=off starts no thread; operations move in calls of mpimcast."""
    comm = make_comm(transport="shm", progress_thread="off", chunk_bytes=0)
    gather_and_check(comm)
    before = threading.active_count()
    each = Gathering(comm, 500_000)
    request = each.start()
    while not request.Test():
        pass
    each.check()
    assert threading.active_count() == before


def test_threads(make_comm: Make) -> None:
    """Threads may each use a communicator of the same segment."""
    if MPI.Query_thread() < MPI.THREAD_MULTIPLE:
        pytest.skip("needs MPI_THREAD_MULTIPLE")
    comms = [make_comm(transport="shm", chunk_bytes=0) for _ in range(3)]
    for each in comms:
        gather_and_check(each)
    failures: list[BaseException] = []

    def work(comm: Intracomm) -> None:
        try:
            for count in (10, 100_000, 1000):
                gather_and_check(comm, count)
        except BaseException as error:  # noqa: BLE001 -- asserted below
            failures.append(error)

    threads = [threading.Thread(target=work, args=(each,)) for each in comms]
    for thread in threads if comms[0].rank % 2 else threads[::-1]:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


# ---- which calls are carried -------------------------------------------------


def test_auto(mpi_comm: MPI.Intracomm) -> None:
    """By default blocks of 4 KiB and more go through shared memory on one host."""
    comm = Intracomm(mpi_comm.Dup(), choice="always")
    if comm.size == 1:
        comm.Free()
        return
    assert "to be opened" in comm.explain(4096).reason
    gather_and_check(comm, 511)
    assert started(comm) == 0
    assert "MIN_BYTES=4096" in comm.explain(4095).reason
    gather_and_check(comm, 512)
    gather_and_check(comm, 511)
    assert started(comm) == 1
    # On settings, on facts, on the segment and on the stream.
    assert comm.stats()["open_messages"] == 4 * (comm.size - 1).bit_length()
    words = f"shm: shared memory of one node, {comm.size} ranks"
    assert str(comm.explain(4096)) == words
    assert comm.explain(4095).path == "mpi"
    duplicate = comm.Dup()
    gather_and_check(duplicate, 512)
    assert duplicate.stats()["open_messages"] == 2 * (comm.size - 1).bit_length()
    duplicate.Free()
    comm.Free()


@pytest.mark.parametrize(
    ("transport", "path"),
    [("shm,udp", "shm"), ("udp,shm", "udp"), ("udp", "udp"), ("shm,mpi", "shm")],
)
def test_lists(make_comm: Make, transport: str, path: str) -> None:
    """The first transport of a list is taken; over udp each rank has an endpoint."""
    comm = make_comm(transport=transport)
    require_two_ranks(comm)
    gather_and_check(comm)
    assert comm.explain(100).path == path
    if path == "udp":
        assert comm.stats()["tx_multicast_bytes"] > 0


@pytest.mark.parametrize("victim", [0, -1])
def test_a_rank_that_gets_no_memory(
    make_comm: Make, monkeypatch: pytest.MonkeyPatch, victim: int
) -> None:
    """If a rank cannot pass or fetch the segment, all take the next transport alike."""
    # No other test leaves a segment of this size open.
    make = {"chunk_bytes": 0, "log": "error", "node_bytes": "34M"}
    probe = make_comm(**make)
    require_two_ranks(probe)
    bad = victim % probe.size

    def fail(*_: Any) -> int:
        raise TransportError("no memory here")

    if probe.rank == bad:
        monkeypatch.setattr(passing, "fetch", fail)
        monkeypatch.setattr(segment, "create", fail)
    for transport, path in (("shm,udp", "udp"), ("auto", "mpi")):
        comm = make_comm(**make, transport=transport, timeout=2)
        gather_and_check(comm)
        assert comm.explain(100).path == path
        assert "no memory here" in comm.explain(100).reason
        assert len(set(comm.allgather(str(comm.explain(100))))) == 1
    comm = make_comm(**make, transport="shm", timeout=2)
    with pytest.raises(TransportError, match="no memory here"):
        gather_and_check(comm)


# ---- many communicators ------------------------------------------------------


def test_many_duplicates(comm: Intracomm) -> None:
    """Two hundred duplicates share a segment, and give it back."""
    require_two_ranks(comm)
    before = len(teams._open)  # noqa: SLF001
    gather_and_check(comm)
    duplicates = [comm.Dup() for _ in range(200)]
    for each in duplicates:
        gather_and_check(each, 40)
        assert started(each) == 1
    assert len(teams._open) == before + 1  # noqa: SLF001
    for each in duplicates:
        gather_and_check(each, 1000)
        each.Free()
    for _ in range(50):
        each = comm.Dup()
        gather_and_check(each)
        assert started(each) == 1
        each.Free()


def test_a_full_segment(make_comm: Make) -> None:
    """If no memory is left, the MPI library carries a communicator, and says why.

    It does not matter whether the transport could be shm alone.
    """
    settings = {"node_bytes": "1M", "chunk_bytes": 0}
    for transport in ("auto", "shm"):
        comm = make_comm(**settings, transport=transport)
        require_two_ranks(comm)
        gather_and_check(comm)
        kept = []
        while True:
            kept.append(comm.Dup())
            gather_and_check(kept[-1], 1000)
            if kept[-1].explain(8000).path == "mpi":
                break
            assert len(kept) < 100
        assert "raise NODE_BYTES=1048576" in kept[-1].explain(8000).reason
        each = Gathering(comm, 1000)
        request = comm.Allgather_init(each.block, each.place)
        assert not isinstance(request, mpimcast.Prequest)
        for salt in range(2):
            each.fill(salt)
            request.Start()
            request.Wait()
            each.check()
        request.Free()
        kept.pop(0).Free()
        again = comm.Dup()
        gather_and_check(again)
        assert again.explain(8000).path == "shm"
        for other in (*kept, again):
            other.Free()


def test_full_then_udp(make_comm: Make) -> None:
    """If no memory is left, the next transport of a list is taken."""
    comm = make_comm(transport="shm,udp", node_bytes=300_000, chunk_bytes=0)
    require_two_ranks(comm)
    kept = [comm, *(comm.Dup() for _ in range(4))]
    for each in kept:
        gather_and_check(each)
    paths = [each.explain(8000).path for each in kept]
    assert paths == sorted(paths)
    assert set(paths) == {"shm", "udp"}
    assert "NODE_BYTES=300000" in kept[-1].explain(8000).reason
    for each in kept[1:]:
        each.Free()


def test_reused_memory(comm: Intracomm) -> None:
    """A stream in memory that another has used begins anew."""
    gather_and_check(comm)
    for turn in range(30):
        each = comm.Dup()
        gather_and_check(each, 1 + 5000 * (turn % 3))
        gather_and_check(each, 10 * turn)
        each.Free()


# ---- ends --------------------------------------------------------------------


def test_nothing_is_left(make_comm: Make, mpi_comm: MPI.Intracomm) -> None:
    """Neither sockets, descriptors nor mappings outlive the last communicator."""

    def left() -> tuple[int, int, int]:
        # /proc/net/unix lists other jobs' sockets too. The folder's own descriptor is
        # closed before its link is read.
        descriptors = list(Path("/proc/self/fd").iterdir())
        links = [str(each.readlink()) for each in descriptors if each.exists()]
        named = re.findall(r"(\d+) @mpimcast-", Path("/proc/net/unix").read_text())
        sockets = sum(f"socket:[{inode}]" in links for inode in named)
        mapped = Path("/proc/self/maps").read_text().count("/memfd:mpimcast")
        return sockets, len(links), mapped

    mpi_comm.Barrier()
    before = left()
    for _ in range(3):
        # No other test leaves a segment of this size open.
        comm = make_comm(transport="shm", node_bytes="33M")
        gather_and_check(comm)
        comm.Iallgather(np.zeros(1), np.zeros(comm.size)).Wait()
        if comm.size > 1:
            assert left()[2] > before[2]
        comm.Free()
    mpi_comm.Barrier()
    assert left() == before
    names = [each.name for each in Path("/dev/shm").iterdir()]  # noqa: S108
    assert not [name for name in names if "mpimcast" in name]


@pytest.mark.parametrize("others", ["larger", "Allgather"])
def test_a_bcast_that_differs(
    comm: Intracomm, mpi_comm: MPI.Intracomm, others: str
) -> None:
    """Ranks that see that a Bcast differs say how; later operations fail everywhere."""
    require_two_ranks(comm)
    gather_and_check(comm)
    said = ""
    try:
        if comm.rank == 0:
            comm.Bcast(np.zeros(100))
        elif others == "larger":
            comm.Bcast(np.zeros(101))
        else:
            gather_and_check(comm, 100)
    except Error as error:
        said = str(error)
    assert any("the ranks disagree" in each for each in mpi_comm.allgather(said))
    with pytest.raises(Error, match="the ranks disagree"):
        gather_and_check(comm)
