# SPDX-License-Identifier: BSD-3-Clause
"""Buffers of several blocks are interpreted as by the MPI library.

A process can be its own neighbour several times. So the MPI library has a collective
of several blocks in which no other process takes part.
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
VECTOR = MPI.DOUBLE.Create_vector(2, 1, 2).Commit()
SPREAD = MPI.INT.Create_resized(0, 12).Commit()


@pytest.fixture(scope="module")
def neighbours() -> Iterator[MPI.Distgraphcomm]:
    """Return a communicator whose one process is its own neighbour three times."""
    here = [0] * NBLOCKS
    comm = MPI.COMM_SELF.Create_dist_graph_adjacent(here, here)
    yield comm
    comm.Free()


Place = Callable[[np.ndarray], object]


@st.composite
def places(draw: st.DrawFn) -> Place:
    """Draw a function that makes a message of a piece of memory, often a wrong one."""

    def mostly(usual: st.SearchStrategy, *odd: object) -> st.SearchStrategy:
        return st.sampled_from(odd) if draw(st.integers(0, 9)) == 0 else usual

    owners: list[Place] = [
        lambda memory: memory,
        lambda memory: memory.view("i4"),
        memoryview,
    ]
    bad: list[Place] = [
        lambda memory: memory[::2],
        lambda memory: memory.tobytes(),
        lambda _: 7,
    ]
    owner = draw(mostly(st.sampled_from(owners), *bad))
    number = st.integers(0, 3)
    listed = st.lists(number, min_size=NBLOCKS, max_size=NBLOCKS)
    arrays = listed.map(np.array)
    odd = [1.5] * NBLOCKS, [1] * (NBLOCKS + 1), "xyz", 1.5
    counts = draw(mostly(st.none() | number | listed | arrays, *odd))
    apart = st.none() | st.integers(3, 6) | st.permutations([1, 5, 9])
    displacements = None if counts is None else draw(mostly(apart, *odd))
    types = st.sampled_from([None, "d", "i", MPI.DOUBLE, MPI.BYTE, VECTOR, SPREAD])
    datatype = draw(mostly(types, "zz", 5))
    both = draw(mostly(st.just((counts, displacements)), (1,), [1, 2]))
    forms: list[Place] = [
        owner,
        lambda memory: [owner(memory), counts],
        lambda memory: (owner(memory), datatype),
        lambda memory: [owner(memory), both],
        lambda memory: [owner(memory), counts, datatype],
        lambda memory: (owner(memory), both, datatype),
        lambda memory: [owner(memory), counts, displacements, datatype],
    ]
    wrong: list[Place] = [
        lambda memory: [owner(memory), counts, displacements, datatype, 1],
        lambda memory: [owner(memory)],
    ]
    return draw(mostly(st.sampled_from(forms), *wrong))


SOURCE = np.random.default_rng(0).integers(0, 256, 8 * NDOUBLES, np.uint8)


def ours(spec: object) -> list[int]:
    """Fill the blocks of a message, and return each block's number of bytes."""
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
@given(places())
def test_as_the_library_receives(neighbours: MPI.Distgraphcomm, place: Place) -> None:
    """Receiving fills the same bytes, or raises the same error, as the MPI library."""
    memories = np.full((2, NDOUBLES), -1.0)
    sizes, errors = [0] * NBLOCKS, []
    try:
        sizes = ours(place(memories[0]))
    except Exception as error:  # noqa: BLE001 -- whatever mpi4py raises
        errors.append((type(error), str(error)))
    begins = [sum(sizes[:index]) for index in range(NBLOCKS)]
    sent = [SOURCE, (sizes, begins), MPI.BYTE]
    try:
        neighbours.Neighbor_alltoallv(sent, place(memories[1]))
    except Exception as error:  # noqa: BLE001 -- whatever mpi4py raises
        errors.append((type(error), str(error)))
    assert len(errors) in (0, 2)
    assert errors[:1] == errors[1:]
    assert np.array_equal(*memories)


def test_own_block() -> None:
    """Each block can be packed alone, from where it lies."""
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
    """Offsets are never negative, whatever the displacements."""
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
