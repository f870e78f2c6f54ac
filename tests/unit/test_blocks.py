# SPDX-License-Identifier: BSD-3-Clause
"""Receive buffers of several blocks are understood as mpi4py understands them.

One process suffices to compare with the MPI library: it can be its own neighbour
several times, and a neighbourhood collective then receives one block for each time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpi4py import MPI

from mpimcast._mpi import blocks

NBLOCKS = 3
NDOUBLES = 60
VECTOR = MPI.DOUBLE.Create_vector(2, 1, 2).Commit()  # a double, a gap, a double
SPREAD = MPI.INT.Create_resized(0, 12).Commit()  # four bytes, and a gap of eight


@pytest.fixture(scope="module")
def neighbours() -> Iterator[MPI.Distgraphcomm]:
    """Return a communicator whose one process is its own neighbour three times."""
    here = [0] * NBLOCKS
    comm = MPI.COMM_SELF.Create_dist_graph_adjacent(here, here)
    yield comm
    comm.Free()


# A function that turns an array into an argument that a program passes as recvbuf.
MakeSpec = Callable[[np.ndarray], object]


@st.composite
def specs(draw: st.DrawFn) -> MakeSpec:
    """Draw a function that turns an array into a receive buffer, often a wrong one."""

    def mostly(usual: st.SearchStrategy, *wrong: object) -> st.SearchStrategy:
        return st.sampled_from(wrong) if draw(st.integers(0, 9)) == 0 else usual

    owners: list[MakeSpec] = [
        lambda memory: memory,
        lambda memory: memory.view("i4"),
        memoryview,
    ]
    bad: list[MakeSpec] = [
        lambda memory: memory[::2],
        lambda memory: memory.tobytes(),
        lambda _: 7,
    ]
    owner = draw(mostly(st.sampled_from(owners), *bad))
    number = st.integers(0, 3)
    listed = st.lists(number, min_size=NBLOCKS, max_size=NBLOCKS)
    arrays = listed.map(np.array)
    no_numbers = [1.5] * NBLOCKS, [1] * (NBLOCKS + 1), "xyz", 1.5
    counts = draw(mostly(st.none() | number | listed | arrays, *no_numbers))
    # Displacements that are far enough from each other for no blocks to overlap.
    apart = st.none() | st.integers(3, 6) | st.permutations([1, 5, 9])
    displacements = None if counts is None else draw(mostly(apart, *no_numbers))
    types = st.sampled_from([None, "d", "i", MPI.DOUBLE, MPI.BYTE, VECTOR, SPREAD])
    datatype = draw(mostly(types, "zz", 5))
    both = draw(mostly(st.just((counts, displacements)), (1,), [1, 2]))
    forms: list[MakeSpec] = [
        owner,
        lambda memory: [owner(memory), counts],
        lambda memory: (owner(memory), datatype),
        lambda memory: [owner(memory), both],
        lambda memory: [owner(memory), counts, datatype],
        lambda memory: (owner(memory), both, datatype),
        lambda memory: [owner(memory), counts, displacements, datatype],
    ]
    wrong: list[MakeSpec] = [
        lambda memory: [owner(memory), counts, displacements, datatype, 1],
        lambda memory: [owner(memory)],
    ]
    return draw(mostly(st.sampled_from(forms), *wrong))


SOURCE = np.random.default_rng(0).integers(0, 256, 8 * NDOUBLES, np.uint8)


def receive(spec: object) -> list[int]:
    """Fill a receive buffer from SOURCE as an operation does; return the blocks' bytes.

    Packed blocks are written to their places; otherwise the bytes are unpacked.
    """
    taken = blocks.receiving(spec, NBLOCKS)
    ends = np.cumsum(taken.blocks_bytes)
    if taken.packed:
        for end, nbytes, offset in zip(
            ends, taken.blocks_bytes, taken.offsets_bytes, strict=True
        ):
            if nbytes:
                place = MPI.buffer.fromaddress(taken.address + offset, nbytes)
                place[:] = SOURCE[end - nbytes : end].tobytes()
    else:
        taken.unpack(SOURCE.ctypes.data)
    return taken.blocks_bytes


@settings(max_examples=500, deadline=None)
@given(specs())
def test_as_mpi4py_receives(neighbours: MPI.Distgraphcomm, make_spec: MakeSpec) -> None:
    """Receiving fills the same bytes, or raises the same error, as with mpi4py."""
    memories = np.full((2, NDOUBLES), -1.0)
    sizes, errors = [0] * NBLOCKS, []
    try:
        sizes = receive(make_spec(memories[0]))
    except Exception as error:  # noqa: BLE001 -- whatever mpi4py raises
        errors.append((type(error), str(error)))
    begins = [sum(sizes[:index]) for index in range(NBLOCKS)]
    sent = [SOURCE, (sizes, begins), MPI.BYTE]
    try:
        neighbours.Neighbor_alltoallv(sent, make_spec(memories[1]))
    except Exception as error:  # noqa: BLE001 -- whatever mpi4py raises
        errors.append((type(error), str(error)))
    assert len(errors) in (0, 2)
    assert errors[:1] == errors[1:]
    assert np.array_equal(*memories)


def test_pack_block() -> None:
    """A block can be packed by itself, as an Allgatherv in place needs."""
    memory = np.arange(20.0)
    taken = blocks.receiving([memory, [1, 0, 2], [4, 0, 1], VECTOR], NBLOCKS)
    assert taken.blocks_bytes == [16, 0, 32]
    assert taken.nbytes == 48
    assert not taken.packed
    for index, expected in enumerate(([12, 14], [], [3, 5, 6, 8])):
        packed = np.full(4, -1.0)
        taken.pack_block(index, packed.ctypes.data)
        assert packed.tolist() == expected + [-1] * (4 - len(expected))


@pytest.mark.parametrize(
    ("counts", "displacements", "first", "offsets"),
    [
        ([2, 1, 3], [0, 2, 3], 0, [0, 16, 24]),
        ([2, 1, 3], [5, 9, 1], 1, [32, 64, 0]),
        ([0, 1, 0], [0, 7, 99], 7, [0, 0, 0]),
        ([0, 0, 0], [4, 5, 6], 0, [0, 0, 0]),
        ([1, 1, 1], [0, -3, 2], -3, [24, 0, 40]),
    ],
)
def test_offsets(
    counts: list[int], displacements: list[int], first: int, offsets: list[int]
) -> None:
    """Offsets count from the lowest byte of all blocks, so they are never negative."""
    memory = np.zeros(20)
    spec = [memory[5:], counts, displacements, MPI.DOUBLE]
    taken = blocks.receiving(spec, NBLOCKS)
    assert taken.packed
    assert taken.address == memory[5:].ctypes.data + 8 * first
    assert taken.offsets_bytes == offsets
    assert taken.blocks_bytes == [8 * count for count in counts]


def test_negative_counts() -> None:
    """Negative counts raise the MPI library's error, since mpi4py has none."""
    with pytest.raises(MPI.Exception) as caught:
        blocks.receiving([np.zeros(9), [1, -1, 1]], NBLOCKS)
    assert caught.value.Get_error_class() == MPI.ERR_COUNT
