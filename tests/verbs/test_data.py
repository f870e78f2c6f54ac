# SPDX-License-Identifier: BSD-3-Clause
"""Allgather over RDMA devices gives every rank the right bytes."""

from __future__ import annotations

import pytest
from ranks import CHUNK, gather, total

from bench.guest.guest import Guest

EDGES = [1, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK, 16 * CHUNK - 1, 100_000]


@pytest.mark.parametrize("nranks", [2, 3, 4, 7, 8])
def test_sizes(guest: Guest, nranks: int) -> None:
    """Sizes around the chunk's, none, and large; each several times."""
    results = gather(guest, nranks, sizes=[0, *EDGES, 1 << 20], repeat=2)
    assert results[0]["explained"].startswith("verbs: RoCE multicast, rxe0:1")


@pytest.mark.parametrize("subgroups", [1, 4])
@pytest.mark.parametrize("chains", ["1", "2", "all"])
def test_subgroups_and_chains(guest: Guest, subgroups: int, chains: str) -> None:
    """Chunks may be spread over groups, and ranks send one after another."""
    settings = {"subgroups": subgroups, "chains": chains}
    gather(guest, 4, sizes=[*EDGES, 300_000], settings=settings)


@pytest.mark.parametrize("checksum", ["off", "full"])
def test_checksum(guest: Guest, checksum: str) -> None:
    """A trailer beside the header, or no check at all."""
    gather(guest, 3, sizes=EDGES, settings={"checksum": checksum})


@pytest.mark.parametrize("join", ["cm", "attach"])
@pytest.mark.parametrize("progress", ["poll", "event"])
def test_ways(guest: Guest, join: str, progress: str) -> None:
    """Groups are joined in two ways, and waited for in two."""
    settings = {"join": join, "progress": progress}
    gather(guest, 4, sizes=EDGES, settings=settings)


def test_many(guest: Guest) -> None:
    """A thousand operations, one after the other."""
    results = gather(guest, 4, sizes=[256, 5000], repeat=500)
    assert total(results, "rx_foreign_datagrams") == 0


def test_communicators(guest: Guest) -> None:
    """Three communicators share the queues, in another order on each rank."""
    gather(guest, 4, sizes=EDGES, repeat=3, ncomms=3)
