# SPDX-License-Identifier: BSD-3-Clause
"""Messages between pairs of ranks, compared with what the MPI library delivers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from gathering import LOSSY
from mpi4py import MPI

from mpimcast import ConfigError, Error, Intracomm, RankLeft, TransportError, sdr

pytestmark = pytest.mark.network

CHUNK_BYTES = 512
SETTINGS = {"transport": "udp", "chunk_bytes": CHUNK_BYTES}

# Around the edges of chunks, and of what the protocol copies or carries in the barrier.
SIZES = (
    *(0, 1, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, 64 * CHUNK_BYTES - 1),
    *((16 << 10) + 1, 64 * CHUNK_BYTES + 1, (1 << 20) - 1, (1 << 20) + 1, 3_000_000),
)

Connect = Callable[..., sdr.Pair]


@pytest.fixture
def connect(mpi_comm: MPI.Intracomm) -> Iterator[Connect]:
    """Yield a function that connects even ranks with the next; skip without a peer.

    The last rank of an odd number of ranks has none. The pairs are closed at the end.
    """
    peer = mpi_comm.rank ^ 1
    if peer >= mpi_comm.size:
        pytest.skip("this rank has no peer")
    made = []

    def make_one(**settings: object) -> sdr.Pair:
        made.append(sdr.connect(mpi_comm, peer, **{**SETTINGS, **settings}))
        return made[-1]

    yield make_one
    for pair in made:
        pair.close()


def content(rank: int, number: int, nbytes: int) -> np.ndarray[Any, Any]:
    """Return the bytes of a rank's message of this number; no two are alike."""
    generator = np.random.default_rng([rank, number, nbytes])
    return generator.integers(0, 256, nbytes, np.uint8)


def exchange(pair: sdr.Pair, number: int, nbytes: int) -> None:
    """Have both ranks send a message at the same time, and check what arrives."""
    place = np.zeros(nbytes, np.uint8)
    request = pair.Isend(content(pair.rank, number, nbytes))
    pair.Recv(place)
    request.Wait()
    assert np.array_equal(place, content(pair.peer, number, nbytes))


@pytest.mark.parametrize("setting", ["code", "auto"])
def test_reliability_of_messages(connect: Connect, setting: str) -> None:
    """A sender decides for each message whether parity is sent with it."""
    pair = connect(fault=LOSSY, reliability=setting, code="8,2", eager_bytes=0)
    place = np.zeros(300_000, np.uint8)
    for number, reliability in enumerate(["code", "repeat", "code", None] * 2):
        before = pair.stats()["parity_sent"]
        own = content(pair.rank, number, place.size)
        request = pair.Isend(own, reliability=reliability)
        pair.Recv(place)
        request.Wait()
        assert np.array_equal(place, content(pair.peer, number, place.size))
        sent = pair.stats()["parity_sent"] - before
        if reliability is not None:
            assert (sent > 0) == (reliability == "code")
    with pytest.raises(ConfigError, match="'parity'"):
        pair.Send(own, reliability="parity")  # type: ignore[arg-type]


def test_a_code_needs_room(connect: Connect) -> None:
    """No message has a code if its pair was connected without; the pair lives."""
    pair = connect()
    with pytest.raises(ConfigError, match="'code' or 'auto'"):
        pair.Isend(bytearray(5000), reliability="code")
    exchange(pair, 0, 5000)


@pytest.mark.parametrize("fault", ["", LOSSY])
def test_sizes(connect: Connect, mpi_comm: MPI.Intracomm, fault: str) -> None:
    """Messages of every size arrive as the MPI library delivers them."""
    pair = connect(fault=fault)
    for number, nbytes in enumerate(SIZES):
        own = content(pair.rank, number, nbytes)
        truth, place = np.zeros(nbytes, np.uint8), np.zeros(nbytes, np.uint8)
        mpi_comm.Sendrecv(own, pair.peer, recvbuf=truth, source=pair.peer)
        if pair.rank < pair.peer:
            pair.Send(own)
            pair.Recv(place)
        else:
            pair.Recv(place)
            pair.Send(own)
        assert np.array_equal(place, truth), nbytes
    assert bool(fault) <= (pair.stats()["rx_lost_chunks"] > 0)


@pytest.mark.parametrize(
    "fault",
    [
        "",
        LOSSY,
        "loss=0.3,kind=all",
        "dup=0.5,delay_us=5000;reorder=0.3,loss=0.05",
        "dup=1,delay_us=20000,kind=repair;loss=0.2",
    ],
)
def test_many_under_way(connect: Connect, fault: str) -> None:
    """Messages posted at once arrive in order, each in its place and only there.

    Late copies of chunks of earlier messages change nothing in later ones, which are as
    long and go to memory that is used again.
    """
    pair = connect(fault=fault)
    rounds, nmessages, nbytes = 3, 12, 20 * CHUNK_BYTES + 7
    places = np.zeros((nmessages, nbytes), np.uint8)
    for turn in range(rounds):
        own = [content(pair.rank, turn * nmessages + i, nbytes) for i in range(12)]
        requests = [pair.Irecv(place) for place in places]
        requests += [pair.Isend(each) for each in own]
        MPI.Request.Waitall(requests)
        for i in range(nmessages):
            expected = content(pair.peer, turn * nmessages + i, nbytes)
            assert np.array_equal(places[i], expected), (turn, i)
    assert pair.stats()["rx_foreign_datagrams"] == 0


def test_directions_are_independent(connect: Connect) -> None:
    """What nobody has sent yet in one direction holds up nothing in the other."""
    pair = connect()
    nbytes = 100_000
    place = np.zeros(nbytes, np.uint8)
    if pair.rank < pair.peer:
        waiting = pair.Irecv(place)
        for number in range(10):
            pair.Send(content(pair.rank, number, nbytes))
        waiting.Wait()
        assert np.array_equal(place, content(pair.peer, 99, nbytes))
    else:
        for number in range(10):
            pair.Recv(place)
            assert np.array_equal(place, content(pair.peer, number, nbytes))
        pair.Send(content(pair.rank, 99, nbytes))


def test_a_window_larger_than_the_buffers(connect: Connect) -> None:
    """A window that was set counts even if receive buffers are smaller."""
    pair = connect(window_bytes=64 << 20, fault="loss=0.01")
    exchange(pair, 1, 16 << 20)


def test_unicast_alone(connect: Connect) -> None:
    """Nothing but unicast is sent, and the path says so."""
    pair = connect()
    assert "UDP unicast" in pair.path()
    assert f"{pair.rank} and {pair.peer}" in repr(pair)
    exchange(pair, 1, 100_000)
    assert pair.stats()["rx_multicast_datagrams"] >= 100_000 // CHUNK_BYTES


@pytest.mark.parametrize("protect", ["off", "authenticate", "encrypt"])
def test_protection(connect: Connect, protect: str) -> None:
    """Messages are protected as PROTECT says."""
    pair = connect(protect=protect, fault="loss=0.05")
    exchange(pair, 1, 300_000)


@pytest.mark.parametrize("coder", ["on", "off"])
@pytest.mark.parametrize("code", ["32,4", "8,1"])
def test_codes(connect: Connect, code: str, coder: str) -> None:
    """With RELIABILITY=code either rank sends parity, by which the other mends losses.

    The blocks mended are right, also of messages that end within a group. With CODER=on
    a thread mends.
    """
    pair = connect(reliability="code", code=code, coder=coder, fault="loss=0.02")
    for number, nbytes in enumerate((400_001, 70_000, 1 << 20)):
        exchange(pair, number, nbytes)
    assert pair.stats()["parity_sent"] > 0
    assert pair.stats()["groups_mended"] > 0
    assert (pair.stats()["coder_mended"] > 0) == (coder == "on")


def test_buffers(connect: Connect) -> None:
    """Buffers have any form that mpi4py takes, gaps included."""
    pair = connect()
    column = MPI.INT32_T.Create_vector(500, 1, 3).Commit()
    matrix = np.arange(1500, dtype=np.int32).reshape(500, 3) + 10_000 * pair.rank
    place = np.full(1500, -1, np.int32)
    pair.Isend([matrix, 1, column])
    pair.Recv([place, 500, MPI.INT32_T])
    assert np.array_equal(place[:500], np.arange(500) * 3 + 10_000 * pair.peer)
    assert (place[500:] == -1).all()
    request = pair.Isend([place, MPI.INT32_T])
    pair.Recv([matrix, 1500, MPI.INT32_T])
    request.Wait()
    column.Free()
    with pytest.raises(TypeError):
        pair.Send(object())  # type: ignore[arg-type]


@pytest.mark.parametrize("longer", ["sender", "receiver"])
def test_unequal_sizes(connect: Connect, longer: str) -> None:
    """Both ranks learn that their sizes differ, and another pair works."""
    pair = connect()
    sender = min(pair.rank, pair.peer)
    sent, room = (9000, 5000) if longer == "sender" else (5000, 9000)
    mine = np.zeros(sent if pair.rank == sender else room, np.uint8)
    with pytest.raises(Error) as caught:
        (pair.Send if pair.rank == sender else pair.Recv)(mine)
    words = f"rank {sender} sends {sent} bytes, but rank {sender ^ 1} receives {room}"
    assert words in str(caught.value)
    assert ("truncated" in str(caught.value)) == (longer == "sender")
    with pytest.raises(Error, match="unusable"):
        (pair.Send if pair.rank == sender else pair.Recv)(mine)
    exchange(connect(), 1, 5000)


def test_a_closed_pair(connect: Connect) -> None:
    """A closed pair refuses messages, and keeps its counters."""
    pair = connect()
    exchange(pair, 1, 5000)
    pair.close()
    pair.close()
    assert pair.path() == ""
    assert "closed" in repr(pair)
    assert pair.stats()["epochs"] > 0
    for act in (pair.Send, pair.Recv, pair.Isend, pair.Irecv):
        with pytest.raises(Error, match="closed"):
            act(np.zeros(1))


def test_a_peer_that_leaves(connect: Connect) -> None:
    """A rank whose peer has closed the pair learns that when it waits for a message."""
    pair = connect()
    if pair.rank < pair.peer:
        with pytest.raises(RankLeft, match=f"rank {pair.peer}") as caught:
            pair.Recv(np.zeros(1000))
        assert caught.value.ranks == (pair.peer,)
    else:
        pair.close()


def test_the_context(connect: Connect) -> None:
    """At the end of a block the pair is closed; after an exception it stays open."""
    with connect() as pair:
        exchange(pair, 1, 5000)
    assert pair.path() == ""
    again = connect()
    with pytest.raises(KeyError), again:
        raise KeyError
    exchange(again, 2, 5000)


def test_wrong_peers(mpi_comm: MPI.Intracomm) -> None:
    """A rank cannot connect with itself, nor with one that there is not."""
    for peer in (mpi_comm.rank, -1, mpi_comm.size, None):
        with pytest.raises(MPI.Exception) as caught:
            sdr.connect(mpi_comm, peer)  # type: ignore[arg-type]
        assert caught.value.Get_error_class() == MPI.ERR_RANK


def test_wrong_settings(connect: Connect) -> None:
    """Settings that carry no messages, or differ, are refused on both ranks."""
    with pytest.raises(ConfigError, match="verbs or udp"):
        connect(transport="shm")
    with pytest.raises(ConfigError, match="no such setting"):
        connect(colour="red")
    rank = MPI.COMM_WORLD.rank
    with pytest.raises(ConfigError, match="TIMEOUT"):
        connect(timeout=5 + rank)
    with pytest.raises(TransportError, match="cannot be connected"):
        connect(net_devices="nosuch0" if rank % 2 else "lo")
    exchange(connect(), 1, 5000)


def test_settings_of_the_communicator(make_comm: Callable[..., Intracomm]) -> None:
    """A pair has the settings that its communicator was given, or its own."""
    comm = make_comm(protect="off")
    peer = comm.rank ^ 1
    if peer >= comm.size:
        pytest.skip("this rank has no peer")
    with sdr.connect(comm, peer) as pair:
        assert f"chunks of {CHUNK_BYTES} bytes" in pair.path()
        assert "authenticated" not in pair.path()
    with sdr.connect(comm, peer, chunk_bytes=400) as pair:
        assert "chunks of 400 bytes" in pair.path()


def test_a_ring(mpi_comm: MPI.Intracomm) -> None:
    """All ranks send round a ring at the same time, beside a collective."""
    rank, size = mpi_comm.rank, mpi_comm.size
    if size == 1:
        pytest.skip("there is no ring of one rank")
    left, right = (rank - 1) % size, (rank + 1) % size
    ring = sdr.connect_all(mpi_comm, {left, right}, **SETTINGS)
    nbytes = 200_000
    block = content(rank, 0, nbytes)
    for step in range(1, size + 1):
        place = np.zeros(nbytes, np.uint8)
        request = ring[right].Isend(block)
        ring[left].Recv(place)
        request.Wait()
        mpi_comm.Barrier()
        assert np.array_equal(place, content((rank - step) % size, 0, nbytes))
        block = place
    for pair in ring.values():
        pair.close()


def test_everyone_with_everyone(mpi_comm: MPI.Intracomm) -> None:
    """Each rank connects with all others, and exchanges with all at once."""
    rank, size = mpi_comm.rank, mpi_comm.size
    pairs = sdr.connect_all(mpi_comm, set(range(size)) - {rank}, **SETTINGS)
    nbytes = 50_001
    places = {peer: np.zeros(nbytes, np.uint8) for peer in pairs}
    requests = [pair.Irecv(places[peer]) for peer, pair in pairs.items()]
    own = {peer: content(rank, peer, nbytes) for peer in pairs}
    requests += [pair.Isend(own[peer]) for peer, pair in pairs.items()]
    MPI.Request.Waitall(requests)
    for peer, place in places.items():
        assert np.array_equal(place, content(peer, rank, nbytes))
    for pair in pairs.values():
        pair.close()


@pytest.mark.long
def test_a_large_message(connect: Connect) -> None:
    """A message of 64 MiB arrives whole, in both directions at once, despite loss."""
    exchange(connect(chunk_bytes=0, fault="loss=0.001"), 1, 64 << 20)
