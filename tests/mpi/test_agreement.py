# SPDX-License-Identifier: BSD-3-Clause
"""Facts that ranks tell each other through the MPI library, and the cost of that."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from mpi4py import MPI

from mpimcast._mpi.agreement import exchange
from mpimcast._mpi.private import Private

LIMIT_S = 30


@pytest.fixture
def private(library: MPI.Intracomm) -> Iterator[Private]:
    """Yield a duplicate of all ranks' communicator."""
    private = Private(library.Dup())
    yield private
    private.Free()


def rounds(private: Private) -> int:
    """Return how often the number of ranks that know a block can double."""
    return (private.size - 1).bit_length()


def test_blocks_of_any_size(private: Private) -> None:
    """Each rank gets all blocks in the order of ranks, empty ones too."""
    for step in range(3):
        sizes = [(rank + step) % 3 * 50_000 for rank in range(private.size)]
        blocks = [bytes([rank]) * nbytes for rank, nbytes in enumerate(sizes)]
        block = blocks[private.rank]
        assert private.share(block, sizes, LIMIT_S, "the test") == blocks
    assert private.nmessages == 3 * rounds(private)


def test_cost(private: Private) -> None:
    """Messages grow with the logarithm of the ranks, and bytes with their number."""
    sizes = [10] * private.size
    private.share(bytes(10), sizes, LIMIT_S, "the test")
    assert private.nmessages == rounds(private)
    assert private.nbytes == 10 * (private.size - 1)


@pytest.mark.parametrize("nbytes", [10, 373, 100_000])
def test_facts_of_any_size(private: Private, nbytes: int) -> None:
    """One rank's fact that is too long for a slot takes a second exchange of all."""
    facts = [[rank, ""] for rank in range(private.size)]
    facts[-1][1] = "x" * nbytes
    assert exchange(private, facts[private.rank], LIMIT_S) == facts
    turns = 1 + (nbytes > 300)
    assert private.nmessages == turns * rounds(private)
