# SPDX-License-Identifier: BSD-3-Clause
"""Networks that do not deliver multicast, from the start or from some time on."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest
from mpi4py import MPI

from mpimcast import Intracomm, TransportError
from mpimcast._support import log

Make = Callable[..., Intracomm]

# Probes are control datagrams: none of them reaches the given rank.
DEAF = "loss=1,kind=control,rank={rank}"


def gather(comm: Intracomm, nbytes: int, salt: int) -> None:
    """Gather blocks and check every byte."""
    ranks = np.arange(comm.size, dtype=np.uint32)
    index = np.arange(nbytes, dtype=np.uint32)
    truth = (31 * ranks[:, None] + 7 * index + salt).astype(np.uint8)
    place = np.full((comm.size, nbytes), 0xEE, np.uint8)
    comm.Allgather(truth[comm.rank].copy(), place)
    assert np.array_equal(place, truth)


def test_falls_back_at_open(make: Make) -> None:
    """If the MPI library is in the list, all ranks take it, and say why."""
    comm = make(transport="udp,mpi", chunk_bytes=0, fault=DEAF.format(rank=1))
    if comm.size < 2:
        pytest.skip("one rank needs no network")
    gather(comm, 10_000, 1)
    explanation = comm.explain(10_000)
    assert explanation.path == "mpi"
    assert "does not reach rank 1" in explanation.reason


def test_fails_at_open(make: Make, library: MPI.Intracomm) -> None:
    """If TRANSPORT=udp cannot be opened, all ranks raise the same error."""
    comm = make(transport="udp", fault=DEAF.format(rank=0))
    if comm.size < 2:
        pytest.skip("one rank needs no network")
    with pytest.raises(TransportError, match="does not reach rank 0") as raised:
        gather(comm, 10_000, 1)
    assert len(set(library.allgather(str(raised.value)))) == 1


@pytest.mark.parametrize("repair", ["nak", "neighbour"])
@pytest.mark.parametrize("deaf", ["0", "1", "0+1"])
def test_goes_on_by_unicast(
    make: Make, caplog: pytest.LogCaptureFixture, repair: str, deaf: str
) -> None:
    """At most 3 operations are multicast in vain; then blocks go round the ring.

    Now and then an operation is still multicast, to see whether the network is back.
    """
    fault = f"loss=1,kind=multicast,rank={deaf}"
    comm = make(fault=fault, repair=repair)
    if comm.size < 2:
        pytest.skip("one rank needs no network")
    caplog.handler.setLevel("WARNING")
    log.logger.addHandler(caplog.handler)
    for salt in range(8):
        gather(comm, 5_000, salt)
    log.logger.removeHandler(caplog.handler)
    stats = comm.stats()
    found = re.match(
        r"since operation [2-4] blocks go round a ring by unicast, because rank "
        r"(\d+) hears no multicast from (any rank|rank (\d+)) \(UDP multicast",
        comm.explain(5_000).reason,
    )
    assert found, comm.explain(5_000)
    assert found[1] in deaf.split("+")
    assert found[3] != found[1]
    warnings = [each.getMessage() for each in caplog.records]
    assert len(warnings) == (comm.rank == 0), warnings
    assert all("no longer delivers multicast" in text for text in warnings)
    assert 4 <= stats["unicast_epochs"] <= 7
    nchunks = -(-5_000 // 512)
    assert stats["tx_multicast_datagrams"] == nchunks * (8 - stats["unicast_epochs"])


def test_small_operations_go_on_too(make: Make) -> None:
    """Operations of one datagram, which is sent before entry, go by unicast too."""
    comm = make(fault="loss=1,kind=multicast,rank=1")
    if comm.size < 2:
        pytest.skip("one rank needs no network")
    for salt in range(20):
        gather(comm, 100, salt)
    assert comm.stats()["unicast_epochs"] >= 10
