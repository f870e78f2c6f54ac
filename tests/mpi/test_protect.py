# SPDX-License-Identifier: BSD-3-Clause
"""PROTECT: protected communicators give right results, and agree on how."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest
from mpi4py import MPI

from mpimcast import ConfigError, Intracomm
from mpimcast._native import protection

Make = Callable[..., Intracomm]

MODES = ("authenticate", "encrypt")
SIZES = (0, 1, 500, 1300, 40_000)

WHY = "as if it were not installed"


@pytest.fixture(params=tuple(protection.PRIMITIVES))
def primitive(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return a primitive, the only one that any rank can use."""
    why = protection.missing()[request.param]
    if why:
        pytest.skip(f"{protection.name(request.param)} cannot be opened: {why}")
    only = {
        each: "" if each == request.param else WHY for each in protection.PRIMITIVES
    }
    monkeypatch.setattr(protection, "missing", lambda: only)
    return str(request.param)


def gather_and_check(comm: Intracomm, nbytes: int, salt: int) -> None:
    """Gather bytes that depend on the rank and a salt; compare them everywhere."""
    random = np.random.default_rng(salt)
    truth = random.integers(0, 256, (comm.size, nbytes), np.uint8)
    place = np.zeros_like(truth)
    comm.Allgather(truth[comm.rank].copy(), place)
    assert (place == truth).all()


def bcast_and_check(comm: Intracomm, nbytes: int, root: int) -> None:
    """Broadcast bytes that the root alone knows; compare them everywhere."""
    truth = np.random.default_rng(nbytes + root).integers(0, 256, nbytes, np.uint8)
    data = truth.copy() if comm.rank == root else np.zeros(nbytes, np.uint8)
    comm.Bcast(data, root)
    assert (data == truth).all()


@pytest.mark.network
@pytest.mark.parametrize("mode", MODES)
def test_operations(make_comm: Make, mode: str, primitive: str) -> None:
    """All operations give the right result, and explain() says by which library."""
    comm = make_comm(protect=mode)
    for salt, nbytes in enumerate(SIZES):
        gather_and_check(comm, nbytes, salt)
        bcast_and_check(comm, nbytes, salt % comm.size)
    if comm.size > 1:
        done = "authenticated" if mode == "authenticate" else "encrypted"
        assert f"{done} by {protection.name(primitive)}" in comm.explain(1 << 20).reason
        assert comm.stats()["rx_forged_datagrams"] == 0
        assert comm.stats()["rx_replayed_datagrams"] == 0


@pytest.mark.network
@pytest.mark.parametrize(
    "settings",
    [
        {"chains": "all"},
        {"chains": 3, "subgroups": 3},
        {"subgroups": 2, "workers": "on"},
        {"checksum": "off"},
        {"checksum": "full"},
        {"repair": "neighbour"},
        {"chunk_bytes": 0},
        {"chunk_bytes": 1},
    ],
    ids=str,
)
def test_settings(make_comm: Make, settings: dict[str, object], seed: int) -> None:
    """Other settings work as they do without, with losses."""
    fault = f"loss=0.02,dup=0.02,reorder=0.02,seed={seed}"
    comm = make_comm(**settings, protect="encrypt", fault=fault)
    for salt, nbytes in enumerate((0, 1, 1300, 9000)):
        gather_and_check(comm, nbytes, salt)


@pytest.mark.network
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("direction", ["rx", "tx"])
def test_corruption(
    make_comm: Make, mode: str, primitive: str, direction: str, seed: int
) -> None:
    """A datagram that was changed anywhere in transit is forged, and then repaired."""
    fault = f"corrupt=0.1,kind=all,dir={direction},seed={seed}"
    comm = make_comm(protect=mode, checksum="off", fault=fault)
    for salt in range(5):
        gather_and_check(comm, 20_000, salt)
    if comm.size > 1:
        forged = comm.allreduce(comm.stats()["rx_forged_datagrams"])
        assert forged > 0
        assert comm.stats()["rx_corrupt_datagrams"] == 0
        assert protection.name(primitive) in str(comm.explain(1 << 20))


@pytest.mark.network
def test_duplicates_are_replays(make_comm: Make, seed: int) -> None:
    """A datagram that comes twice is dropped the second time, whatever its kind."""
    comm = make_comm(protect="authenticate", fault=f"dup=1,kind=all,seed={seed}")
    for salt in range(5):
        gather_and_check(comm, 20_000, salt)
    if comm.size > 1:
        assert comm.stats()["rx_replayed_datagrams"] > 0
        assert comm.stats()["rx_forged_datagrams"] == 0


@pytest.mark.network
@pytest.mark.parametrize("mode", MODES)
def test_forms(make_comm: Make, mode: str) -> None:
    """Derived communicators, requests and persistent requests are protected, too."""
    comm = make_comm(protect=mode)
    send = np.full(5000, comm.rank, np.int32)
    truth = np.repeat(np.arange(comm.size, dtype=np.int32), 5000)
    got = [np.zeros(truth.size, np.int32) for _ in range(4)]
    again = comm.Allgather_init(send, got[0])
    for _ in range(2):
        again.Start()
        again.Wait()
    again.Free()
    MPI.Request.Waitall([comm.Iallgather(send, each) for each in got[1:3]])
    twin = comm.Dup()
    twin.Allgather(send, got[3])
    for each in got:
        assert (each == truth).all()
    parts = comm.Split(comm.rank % 2, -comm.rank)
    gather_and_check(parts, 9000, 3)
    if comm.size > 1:
        assert "by " in twin.explain(1 << 20).reason
    parts.Free()
    twin.Free()


@pytest.mark.network
def test_many_teams(make_comm: Make) -> None:
    """Communicators of the same ranks that differ in PROTECT have keys of their own."""
    comms = [
        make_comm(protect=mode) for mode in ("off", "authenticate", "encrypt", "auto")
    ]
    for salt, comm in itertools.product(range(3), comms):
        gather_and_check(comm, 3000, salt)
    if comms[0].size > 1:
        reasons = [comm.explain(1 << 20).reason for comm in comms]
        assert "by " not in reasons[0]
        assert all("authenticated by" in reasons[each] for each in (1, 3))
        assert "encrypted by" in reasons[2]


def test_disagreement(mpi_comm: MPI.Intracomm) -> None:
    """Ranks with different PROTECT all learn of it."""
    comm = Intracomm(
        mpi_comm.Dup(), min_bytes=0, protect="encrypt" if mpi_comm.rank else "off"
    )
    if comm.size == 1:
        pytest.skip("one rank cannot disagree")
    with pytest.raises(ConfigError, match="PROTECT is 'off' on rank 0"):
        comm.Allgather(np.zeros(1), np.zeros(comm.size))
    comm.Free()


@pytest.mark.network
def test_a_primitive_that_all_have(
    make_comm: Make, mpi_comm: MPI.Intracomm, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If one rank lacks the fastest library, all take the next."""
    if protection.missing()["aes"]:
        pytest.skip("there is no libcrypto")
    mine = {"aegis": WHY, "aes": ""} if mpi_comm.rank == 0 else {"aegis": "", "aes": ""}
    monkeypatch.setattr(protection, "missing", lambda: mine)
    comm = make_comm(protect="encrypt")
    gather_and_check(comm, 5000, 1)
    if comm.size > 1:
        assert f"by {protection.name('aes')}" in comm.explain(1 << 20).reason


@pytest.mark.network
@pytest.mark.parametrize("mode", ["auto", *MODES])
def test_a_rank_without_a_library(
    make_comm: Make,
    mpi_comm: MPI.Intracomm,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    mode: str,
) -> None:
    """All ranks raise an error that names the rank, or agree on none with `auto`."""
    last = mpi_comm.size - 1
    if last == 0:
        pytest.skip("a single rank opens nothing")
    if mpi_comm.rank == last:
        mine = dict.fromkeys(protection.PRIMITIVES, WHY)
        monkeypatch.setattr(protection, "missing", lambda: mine)
    comm = make_comm(protect=mode)
    said = f"rank {last} has no library to protect datagrams that all have: {WHY}"
    if mode == "auto":
        monkeypatch.setattr("mpimcast._support.log.logger.propagate", True)
        gather_and_check(comm, 5000, 1)
        assert "not protected (PROTECT=auto)" in comm.explain(1 << 20).reason
        assert (said in caplog.text) == (comm.rank == 0)
    else:
        with pytest.raises(ConfigError, match=said) as caught:
            comm.Allgather(np.zeros(1), np.zeros(comm.size))
        assert caught.value.ranks == (last,)
