# SPDX-License-Identifier: BSD-3-Clause
"""Ranks exchange blocks and facts through the MPI library; what that costs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from mpi4py import MPI

from mpimcast._mpi.agreement import exchange
from mpimcast._mpi.private import Private

# How long ranks wait for each other.
LIMIT_S = 30


@pytest.fixture
def private(mpi_comm: MPI.Intracomm) -> Iterator[Private]:
    """Yield a private duplicate of the communicator of all ranks."""
    private = Private(mpi_comm.Dup())
    yield private
    private.Free()


def rounds(private: Private) -> int:
    """Return ceil(log2 P), the messages that a rank sends to share one block."""
    return (private.size - 1).bit_length()


def test_blocks_of_any_size(private: Private) -> None:
    """Each rank gets all blocks, even empty ones, in the order of ranks."""
    for step in range(3):
        sizes = [(rank + step) % 3 * 50_000 for rank in range(private.size)]
        blocks = [bytes([rank]) * nbytes for rank, nbytes in enumerate(sizes)]
        block = blocks[private.rank]
        assert private.share(block, sizes, LIMIT_S, "the test") == blocks
    assert private.nmessages == 3 * rounds(private)


def test_messages_and_bytes(private: Private) -> None:
    """A rank sends ceil(log2 P) messages, and in them P - 1 blocks."""
    sizes = [10] * private.size
    private.share(bytes(10), sizes, LIMIT_S, "the test")
    assert private.nmessages == rounds(private)
    assert private.nbytes == 10 * (private.size - 1)


@pytest.mark.parametrize(
    ("nbytes", "nshares"), [(10, 1), (373, 2), (100_000, 2)], ids=str
)
def test_facts_of_any_size(private: Private, nbytes: int, nshares: int) -> None:
    """If one rank's fact is too long for its slot, the ranks share blocks twice."""
    facts = [[rank, ""] for rank in range(private.size)]
    facts[-1][1] = "x" * nbytes
    assert exchange(private, facts[private.rank], LIMIT_S) == facts
    assert private.nmessages == nshares * rounds(private)
