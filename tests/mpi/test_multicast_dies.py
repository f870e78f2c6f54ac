# SPDX-License-Identifier: BSD-3-Clause
"""Networks that deliver no multicast, from the start or from some operation on."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest
from mpi4py import MPI

from mpimcast import Intracomm, TransportError
from mpimcast._support import log

pytestmark = pytest.mark.network

Make = Callable[..., Intracomm]

# A value of FAULT with which a rank seems, at opening, to hear no multicast: the probes
# that find this out are control datagrams.
LOSE_PROBES = "loss=1,kind=control,rank={rank}"


def gather(comm: Intracomm, nbytes: int, salt: int) -> None:
    """Gather blocks that depend on `salt`, and check every byte."""
    ranks = np.arange(comm.size, dtype=np.uint32)
    index = np.arange(nbytes, dtype=np.uint32)
    truth = (31 * ranks[:, None] + 7 * index + salt).astype(np.uint8)
    place = np.full((comm.size, nbytes), 0xEE, np.uint8)
    comm.Allgather(truth[comm.rank].copy(), place)
    assert np.array_equal(place, truth)


def test_falls_back_at_open(make_comm: Make) -> None:
    """If no multicast arrives, TRANSPORT=udp,mpi takes the MPI library and says why."""
    comm = make_comm(
        transport="udp,mpi", chunk_bytes=0, fault=LOSE_PROBES.format(rank=1)
    )
    if comm.size < 2:
        pytest.skip("one rank needs no network")
    gather(comm, 10_000, 1)
    explanation = comm.explain(10_000)
    assert explanation.path == "mpi"
    assert "does not reach rank 1" in explanation.reason


def test_fails_at_open(make_comm: Make, mpi_comm: MPI.Intracomm) -> None:
    """If no multicast arrives, TRANSPORT=udp raises the same error on all ranks."""
    comm = make_comm(transport="udp", fault=LOSE_PROBES.format(rank=0))
    if comm.size < 2:
        pytest.skip("one rank needs no network")
    with pytest.raises(TransportError, match="does not reach rank 0") as raised:
        gather(comm, 10_000, 1)
    assert len(set(mpi_comm.allgather(str(raised.value)))) == 1


@pytest.mark.parametrize("repair", ["nak", "neighbour"])
@pytest.mark.parametrize("deaf", ["0", "1", "0+1"])
def test_goes_on_by_unicast(
    make_comm: Make, caplog: pytest.LogCaptureFixture, repair: str, deaf: str
) -> None:
    """If some ranks stop hearing multicast, blocks soon go round a ring by unicast.

    Of 8 operations at most 3 are multicast before that. A later one may be multicast
    again, to find out whether it arrives.
    """
    fault = f"loss=1,kind=multicast,rank={deaf}"
    comm = make_comm(fault=fault, repair=repair)
    if comm.size < 2:
        pytest.skip("one rank needs no network")
    caplog.handler.setLevel("WARNING")
    log.logger.addHandler(caplog.handler)
    for salt in range(8):
        gather(comm, 25_000, salt)
    log.logger.removeHandler(caplog.handler)
    stats = comm.stats()
    found = re.match(
        r"since operation [2-4] blocks go round a ring by unicast, because rank "
        r"(\d+) hears no multicast from (any rank|rank (\d+)) \(UDP multicast",
        comm.explain(25_000).reason,
    )
    assert found, comm.explain(25_000)
    assert found[1] in deaf.split("+")
    assert found[3] != found[1]
    warnings = [each.getMessage() for each in caplog.records]
    assert len(warnings) == (comm.rank == 0), warnings
    assert all("no longer delivers multicast" in text for text in warnings)
    assert 4 <= stats["unicast_epochs"] <= 7
    nchunks = -(-25_000 // 512)
    assert stats["tx_multicast_datagrams"] == nchunks * (8 - stats["unicast_epochs"])


def test_small_operations_go_on_by_unicast(make_comm: Make) -> None:
    """Blocks of one datagram, which are multicast before entry, go by unicast too.

    Equal blocks would be carried by the barrier.
    """
    comm = make_comm(fault="loss=1,kind=multicast,rank=1", chunk_bytes=1000)
    if comm.size < 2:
        pytest.skip("one rank needs no network")
    counts = [900 + rank for rank in range(comm.size)]
    truth = np.repeat(np.arange(comm.size, dtype=np.uint8), counts)
    for salt in range(20):
        place = np.full(truth.size, 0xEE, np.uint8)
        sent = np.full(counts[comm.rank], comm.rank + salt, np.uint8)
        comm.Allgatherv(sent, [place, counts])
        assert np.array_equal(place, truth + salt)
    assert comm.stats()["unicast_epochs"] >= 10


def test_the_smallest_blocks_need_no_multicast(make_comm: Make) -> None:
    """Blocks that the barrier carries arrive, and nobody gives multicast up."""
    comm = make_comm(fault="loss=1,kind=multicast,rank=1")
    if comm.size < 2:
        pytest.skip("one rank needs no network")
    for salt in range(20):
        gather(comm, 100, salt)
    stats = comm.stats()
    assert stats["unicast_epochs"] == 0
    assert stats["tx_multicast_datagrams"] == 0
