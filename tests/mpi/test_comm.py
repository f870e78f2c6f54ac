# SPDX-License-Identifier: BSD-3-Clause
"""Communicators: their handles, settings, derivation and end."""

# ruff: noqa: SLF001 -- counts the teams that are open

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable

import numpy as np
import pytest
from gathering import gather_and_check, started
from mpi4py import MPI

from mpimcast import ConfigError, Error, Intracomm, TransportError
from mpimcast._session import teams

Make = Callable[..., Intracomm]

# Counters whose names users' programs rely on.
COUNTERS = {
    *(
        f"{way}_{kind}_{unit}"
        for way in ("tx", "rx")
        for kind in ("multicast", "control", "repair")
        for unit in ("bytes", "datagrams")
    ),
    *(f"rx_{fate}_chunks" for fate in ("lost", "repaired", "duplicate")),
    *(f"rx_{fate}_datagrams" for fate in ("foreign", "corrupt")),
    *(f"{stage}_ns" for stage in ("open", "entry", "multicast", "repair", "release")),
    *("open_messages", "open_bytes"),
    "epochs",
}


def test_is_an_mpi_intracomm(comm: Intracomm, mpi_comm: MPI.Intracomm) -> None:
    """An mpimcast.Intracomm is congruent, and does what an MPI.Intracomm does."""
    assert isinstance(comm, MPI.Intracomm)
    assert MPI.Comm.Compare(comm, mpi_comm) == MPI.CONGRUENT
    assert comm.allgather(comm.rank) == list(range(comm.size))
    assert comm.bcast({"a": 1}) == {"a": 1}
    assert MPI.Intracomm(comm) == comm
    assert not hasattr(MPI.Intracomm(comm), "stats")


def test_handles_share_state(comm: Intracomm) -> None:
    """All handles of one communicator share its counters and operations."""
    other = Intracomm(comm)
    plain = Intracomm(MPI.Intracomm(comm))
    gather_and_check(comm)
    gather_and_check(other)
    gather_and_check(plain)
    assert other == comm
    # In between, a thread may look for datagrams that do not come.
    first, second, third = (
        {**one.stats(), "rx_calls": 0} for one in (comm, other, plain)
    )
    assert first == second == third
    if comm.size > 1:
        assert started(comm) == 3


def test_conflicting_settings(comm: Intracomm) -> None:
    """A further handle may repeat settings or add some, but not change them.

    Once the ranks have agreed on settings none can be added.
    """
    assert Intracomm(comm, chunk_bytes="512", chains=2) == comm
    with pytest.raises(ConfigError, match="chunk_bytes=1024 conflicts with 512"):
        Intracomm(comm, chunk_bytes=1024)
    gather_and_check(comm)
    Intracomm(comm, chains=2)
    if comm.size > 1:
        with pytest.raises(ConfigError, match="all ranks have agreed"):
            Intracomm(comm, ttl=2)
    gather_and_check(comm)


def test_bad_settings(mpi_comm: MPI.Intracomm) -> None:
    """A bad value is an error that names the choices, at once and on this rank."""
    with pytest.raises(ConfigError, match=r"transport=tcp.*verbs, udp and mpi"):
        Intracomm(mpi_comm, transport="tcp")
    with pytest.raises(ConfigError, match="there is no such setting: speed"):
        Intracomm(mpi_comm, speed=9)
    with pytest.raises(ConfigError, match="fault=loss=2"):
        Intracomm(mpi_comm, fault="loss=2")


def test_no_progress_thread(mpi_comm: MPI.Intracomm) -> None:
    """PROGRESS_THREAD=off with TRANSPORT=udp is an error on all ranks."""
    if mpi_comm.size == 1:
        return
    comm = Intracomm(mpi_comm.Dup(), transport="udp", progress_thread="off")
    for _ in range(2):
        with pytest.raises(ConfigError, match="over shm and verbs only"):
            gather_and_check(comm, 9000)
    comm.Free()


@pytest.mark.parametrize("count", [1, 100_000])
@pytest.mark.parametrize(
    ("setting", "different", "usual"),
    [("min_bytes", "8", "65536"), ("chains", "3", "auto"), ("fault", "seed=1", "")],
)
def test_ranks_that_disagree(
    mpi_comm: MPI.Intracomm, setting: str, different: str, usual: str, count: int
) -> None:
    """If the last rank's setting differs, all ranks raise the same error.

    It names the setting, its values and the ranks, even where a rank would have left
    the collective to the MPI library.
    """
    rank, size = mpi_comm.rank, mpi_comm.size
    value = different if rank == size - 1 else usual
    comm = Intracomm(mpi_comm.Dup(), **{setting: value})
    block, place = np.zeros(count), np.zeros(count * size)
    if size == 1:
        comm.Allgather(block, place)
        comm.Free()
        return
    texts = []
    for _ in range(2):
        with pytest.raises(ConfigError) as caught:
            comm.Allgather(block, place)
        texts.append(str(caught.value))
    assert texts[0] == texts[1]
    assert len(set(mpi_comm.allgather(texts[0]))) == 1
    assert f"{setting.upper()} is" in texts[0]
    for part in (
        different,
        usual,
        f"on rank {size - 1}",
        "rank 0" if size == 2 else "ranks 0",
    ):
        assert part in texts[0]
    comm.Free()


def test_one_rank_cannot_open(mpi_comm: MPI.Intracomm) -> None:
    """If one rank has no device to open, all ranks fail, or all use the MPI library.

    All of them give the same reason, which names that rank.
    """
    if mpi_comm.size == 1:
        return
    bad = mpi_comm.size - 1
    devices = "nosuch0" if mpi_comm.rank == bad else ""
    comm = Intracomm(mpi_comm.Dup(), transport="udp", net_devices=devices)
    block, place = np.zeros(9000), np.zeros(9000 * mpi_comm.size)
    texts = []
    for _ in range(2):
        with pytest.raises(TransportError, match=f"rank {bad}: .*nosuch0") as caught:
            comm.Allgather(block, place)
        assert caught.value.ranks == (bad,)
        texts.append(str(caught.value))
    assert len({*mpi_comm.allgather(texts[0]), *texts}) == 1
    assert comm.explain(10**6).path == "none"
    comm.Free()

    kinds = "verbs,udp,mpi"
    comm = Intracomm(mpi_comm.Dup(), transport=kinds, net_devices=devices, log="error")
    gather_and_check(comm, 9000)
    why = comm.explain(72_000)
    assert why.path == "mpi"
    assert f"rank {bad}: " in why.reason
    assert len(set(mpi_comm.allgather(str(why)))) == 1
    assert started(comm) == 0
    comm.Free()


def test_explain(mpi_comm: MPI.Intracomm) -> None:
    """explain() names, in one line, what would carry a size and why."""
    comm = Intracomm(mpi_comm.Dup(), transport="udp")
    if comm.size == 1:
        assert str(comm.explain(10**6)) == "mpi: there is only one rank"
        comm.Free()
        return
    assert comm.explain(10**6).path == "udp"
    assert "first operation" in comm.explain(10**6).reason
    gather_and_check(comm, 9000)
    assert comm.explain(65536).path == "udp"
    assert "multicast" in comm.explain(65536).reason
    assert comm.explain(65535).path == "mpi"
    assert "MIN_BYTES=65536" in comm.explain(65535).reason
    assert "\n" not in str(comm.explain(1))
    forced = Intracomm(mpi_comm.Dup(), transport="mpi")
    gather_and_check(forced, 9000)
    assert str(forced.explain(10**6)) == "mpi: TRANSPORT=mpi"
    assert started(forced) == 0
    forced.Free()
    comm.Free()


@pytest.mark.parametrize("node_bytes", [0, "64K"])
def test_one_host_without_memory(mpi_comm: MPI.Intracomm, node_bytes: object) -> None:
    """On one host without shared memory TRANSPORT=auto leaves all data to MPI."""
    comm = Intracomm(mpi_comm.Dup(), node_bytes=node_bytes)
    gather_and_check(comm, 9000)
    why = comm.explain(72_000)
    assert why.path == "mpi"
    if comm.size > 1:
        assert "one host, but not memory" in why.reason
        assert "NODE_BYTES" in why.reason
    assert started(comm) == 0
    comm.Free()


@pytest.mark.network
def test_stats(comm: Intracomm) -> None:
    """stats() is a flat dict of int with all of COUNTERS, and counts an operation."""
    assert set(comm.stats()) >= COUNTERS
    assert not any(comm.stats().values())
    gather_and_check(comm, 3000)
    stats = comm.stats()
    assert all(type(value) is int for value in stats.values())
    if comm.size == 1:
        assert {name for name, value in stats.items() if value} == {"calls_small"}
        return
    assert stats["epochs"] == 1
    assert stats["open_ns"] > 0
    assert stats["open_messages"] % (comm.size - 1).bit_length() == 0
    assert stats["open_bytes"] % (comm.size - 1) == 0
    assert 0 < stats["open_bytes"] < 5000 * comm.size
    chunks = -(-24_000 // 512)
    assert stats["tx_multicast_datagrams"] == chunks
    assert stats["tx_multicast_bytes"] == 24_000 + 16 * chunks
    received = stats["rx_multicast_datagrams"] + stats["rx_repair_datagrams"]
    assert received >= (comm.size - 1) * chunks


def test_duplicates_share_a_team(comm: Intracomm) -> None:
    """A duplicate shares its origin's team; ranks in another order need a new team."""
    if comm.size == 1:
        return
    before = len(teams._open)
    gather_and_check(comm)
    assert len(teams._open) == before + 1
    derived = [comm.Dup() for _ in range(5)]
    for each in reversed(derived):
        gather_and_check(each)
    assert len(teams._open) == before + 1
    backwards = comm.Split(0, -comm.rank)
    gather_and_check(backwards)
    assert len(teams._open) == before + 2
    backwards.Free()
    for each in derived:
        gather_and_check(each)
        each.Free()
    assert len(teams._open) == before + 1
    gather_and_check(comm)
    comm.Free()
    assert len(teams._open) == before


def test_many_in_turn(make_comm: Make, long: bool) -> None:
    """Many communicators can be derived, used and freed one after the other."""
    comm = make_comm()
    for turn in range(200 if long else 20):
        derived = comm.Dup() if turn % 2 else comm.Split(0, -comm.rank)
        gather_and_check(derived, 10 * turn)
        derived.Free()
    gather_and_check(comm)


def test_free_by_another_handle(mpi_comm: MPI.Intracomm) -> None:
    """A communicator's team closes even if an MPI.Intracomm handle frees it."""
    if mpi_comm.size == 1:
        return
    before = len(teams._open)
    comm = Intracomm(mpi_comm.Dup(), transport="udp", min_bytes=0)
    gather_and_check(comm)
    plain = MPI.Intracomm(comm)
    plain.Free()
    assert len(teams._open) == before


def test_free_unused(mpi_comm: MPI.Intracomm) -> None:
    """A communicator that was never used can be freed."""
    comm = Intracomm(mpi_comm.Dup())
    comm.Free()
    assert comm == MPI.COMM_NULL


def test_several_at_once(make_comm: Make, seed: int) -> None:
    """Threads may each use a communicator, and start in another order on each rank."""
    if MPI.Query_thread() < MPI.THREAD_MULTIPLE:
        pytest.skip("needs MPI_THREAD_MULTIPLE")
    comms = [make_comm(fault=f"loss=0.05,seed={seed}") for _ in range(3)]
    failures: list[BaseException] = []

    def work(comm: Intracomm) -> None:
        try:
            for count in (10, 1000, 3000):
                gather_and_check(comm, count)
        except BaseException as error:  # noqa: BLE001 -- asserted below
            failures.append(error)

    threads = [threading.Thread(target=work, args=(comm,)) for comm in comms]
    if comms[0].rank % 2:
        threads.reverse()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_pickle() -> None:
    """Handles of the predefined communicators can be pickled, as in mpi4py."""
    plain = pickle.loads(pickle.dumps(MPI.COMM_WORLD))  # noqa: S301 -- our own
    assert plain == MPI.COMM_WORLD
    ours = pickle.loads(pickle.dumps(Intracomm(MPI.COMM_SELF)))  # noqa: S301
    assert ours == MPI.COMM_SELF
    gather_and_check(ours)


def test_errors_are_local_to_their_communicator(make_comm: Make) -> None:
    """An error on one communicator leaves another one, of the same team, usable."""
    good = make_comm()
    if good.size == 1:
        return
    bad = make_comm()
    gather_and_check(bad)
    count = 1 if bad.rank == 0 else 2
    with pytest.raises(Error, match="disagree"):
        bad.Allgather(np.zeros(count), np.zeros(count * bad.size))
    gather_and_check(good)
