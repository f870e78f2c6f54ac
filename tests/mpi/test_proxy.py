# SPDX-License-Identifier: BSD-3-Clause
"""PROGRESS=proxy: results equal the MPI library's, on all ranks or beside host ranks.

Programs need not know of proxies: the settings alone say which ranks have them. With
--adapter these ranks have emulated network adapters instead.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from forms import FORMS, run_at_once
from gathering import gather_and_check
from mpi4py import MPI
from proxied import WHO, Make

import mpimcast
from mpimcast import ConfigError, Intracomm

pytestmark = pytest.mark.network

# Runs a collective, given by its name, with these arguments.
Call = Callable[..., None]

# Blocks without data, of parts of chunks, of whole chunks, and of many.
SIZES = (0, 1, 511, 512, 513, 1024, 5000, 60_000)

FAULTS = (
    "",
    "loss=0.05",
    "loss=0.2",
    "dup=0.2",
    "reorder=0.2",
    "loss=0.2,dup=0.1,reorder=0.1",
)


def random_bytes(nbytes: int, *seeds: int) -> np.ndarray:
    """Return bytes that depend on the seeds alone."""
    return np.random.default_rng(seeds).integers(0, 256, nbytes, np.uint8)


def allgather(call: Call, comm: MPI.Intracomm, nbytes: int, salt: int) -> bytes:
    """Gather equal blocks; return the result."""
    place = np.full(comm.size * nbytes, 7, np.uint8)
    call("Allgather", random_bytes(nbytes, salt, comm.rank), place)
    return place.tobytes()


def allgatherv(call: Call, comm: MPI.Intracomm, nbytes: int, salt: int) -> bytes:
    """Gather blocks that differ in size, to places with gaps; return all of these."""
    counts = [(rank + salt) % 3 * nbytes // 2 for rank in range(comm.size)]
    displs = [begin + 5 for begin in itertools.accumulate(counts, initial=0)][:-1]
    place = np.full(sum(counts) + 10, 7, np.uint8)
    mine = random_bytes(counts[comm.rank], salt, comm.rank)
    call("Allgatherv", mine, [place, counts, displs, MPI.BYTE])
    return place.tobytes()


def bcast(call: Call, comm: MPI.Intracomm, nbytes: int, salt: int) -> bytes:
    """Broadcast what the root alone has; return what has come."""
    data = random_bytes(nbytes, salt, comm.rank)
    call("Bcast", data, salt % comm.size)
    return data.tobytes()


OPERATIONS = (allgather, allgatherv, bcast)


def compare(comm: Intracomm, form: str, nbytes: int, salt: int) -> None:
    """Run every collective, and compare its result with the MPI library's."""
    library = MPI.Intracomm(MPI.COMM_WORLD)
    ours, theirs = partial(FORMS[form], comm), partial(run_at_once, library)
    for operation in OPERATIONS:
        expected = operation(theirs, library, nbytes, salt)
        found = operation(ours, comm, nbytes, salt)
        assert found == expected, (operation.__name__, nbytes, salt)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("who", WHO)
def test_results(
    make_proxied: Make, who: str, fault: str, form: str, seed: int
) -> None:
    """Results of all sizes are the MPI library's, whatever the network does."""
    comm = make_proxied(who, fault=f"{fault},seed={seed}" if fault else "")
    gather_and_check(comm)  # which opens it, as a request would not
    for salt, nbytes in enumerate(SIZES):
        compare(comm, form, nbytes, salt)
    if comm.size > 1:
        assert comm.stats()["epochs"] > 0
        lost = comm.allreduce(comm.stats()["rx_lost_chunks"])
        assert lost > 0 or "loss" not in fault


@pytest.mark.parametrize("who", WHO)
def test_large_results(make_proxied: Make, who: str) -> None:
    """Large blocks in the largest chunks, some of them private and some engine memory.

    Results in memory of `mpimcast.empty` need no copy by the rank.
    """
    comm = make_proxied(who, chunk_bytes=0)
    compare(comm, "blocking", 3_000_001, 1)
    count = 250_000
    place = mpimcast.empty((comm.size, count), comm=comm)
    for step in range(3):
        comm.Allgather(np.full(count, comm.rank + 10.0 * step), place)
        assert (place == np.arange(comm.size)[:, None] + 10.0 * step).all()


@pytest.mark.parametrize(
    "settings",
    [
        {"chains": "all"},
        {"chains": 2, "subgroups": 3},
        {"subgroups": 2, "workers": "on"},
        {"checksum": "full", "protect": "off"},
        {"protect": "encrypt"},
        {"repair": "neighbour"},
        {"eager_bytes": 0},
        {"window_bytes": "8K"},
    ],
    ids=str,
)
@pytest.mark.parametrize("who", WHO)
def test_settings(
    make_proxied: Make, adapter: str, who: str, settings: dict[str, object], seed: int
) -> None:
    """Results are right under other settings, with losses.

    Adapters refuse to protect datagrams.
    """
    comm = make_proxied(
        who, **settings, fault=f"loss=0.05,dup=0.02,reorder=0.05,seed={seed}"
    )
    if adapter and settings.get("protect") == "encrypt":
        with pytest.raises(ConfigError, match="firmware"):
            gather_and_check(comm)
        return
    for salt, nbytes in enumerate((0, 1, 1300, 40_000)):
        compare(comm, "blocking", nbytes, salt)


@pytest.mark.parametrize("who", WHO)
def test_many_at_once(make_proxied: Make, who: str, seed: int) -> None:
    """Requests in flight together, and one started again and again, stay apart."""
    comm = make_proxied(who, fault=f"loss=0.1,seed={seed}")
    gather_and_check(comm)
    sizes = (10, 0, 4000, 513, 20_000)
    sent = [random_bytes(nbytes, comm.rank, nbytes) for nbytes in sizes]
    places = [np.zeros((comm.size, nbytes), np.uint8) for nbytes in sizes]
    again, token = np.zeros((comm.size, 700)), np.full(700, comm.rank, float)
    persistent = comm.Allgather_init(token, again)
    for step in range(4):
        token.fill(step + comm.rank)
        requests = list(map(comm.Iallgather, sent, places))
        persistent.Start()
        for request, place in reversed(list(zip(requests, places, strict=True))):
            for rank in request.blocks():
                expected = random_bytes(place.shape[1], rank, place.shape[1])
                assert (place[rank] == expected).all()
            request.Wait()
        persistent.Wait()
        assert (again[:, 0] == step + np.arange(comm.size)).all()
        for nbytes, place in zip(sizes, places, strict=True):
            for rank in range(comm.size):
                assert (place[rank] == random_bytes(nbytes, rank, nbytes)).all()
            place.fill(0)
    persistent.Free()


@pytest.mark.parametrize("who", WHO)
def test_derived_communicators(make_proxied: Make, who: str) -> None:
    """Duplicates and parts have proxies where their parent's ranks have them."""
    comm = make_proxied(who)
    twin, part = comm.Dup(), comm.Split(comm.rank % 2, -comm.rank)
    for each in (comm, twin, part, comm):
        gather_and_check(each)
    part.Free()
    twin.Free()
