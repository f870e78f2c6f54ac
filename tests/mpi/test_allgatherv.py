# SPDX-License-Identifier: BSD-3-Clause
"""Allgatherv compared with the MPI library's, for all buffers and displacements."""

from __future__ import annotations

import array
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from gathering import started
from kinds import OWNERS, TYPES, UNIT_BYTES, Kind, Owner, check_mistake, pairwise
from mpi4py import MPI

from mpimcast import Error, Intracomm

Make = Callable[..., Intracomm]


@pytest.fixture
def comm(shared_comm: Intracomm) -> Intracomm:
    """Return one communicator for all tests here, none of which spoils it."""
    return shared_comm


# By name: how many units a rank contributes, given the rank and the number of ranks.
SHARES: dict[str, Callable[[int, int], int]] = {
    "equal": lambda _rank, _size: 3,
    "uneven": lambda rank, _size: (7 * rank + 2) % 5 + 1,
    "odd ranks only": lambda rank, _size: rank % 2 * (rank + 2),
    "last only": lambda rank, size: 9 * (rank == size - 1),
    "first has most": lambda rank, _size: 1 if rank else 400,
    "nothing": lambda _rank, _size: 0,
}


def _beside(counts: Sequence[int]) -> list[int]:
    """Return the displacements of blocks that lie side by side in rank order."""
    return [0, *itertools.accumulate(counts[:-1])]


# By name: what computes the displacements of all blocks, in items, from their counts.
PLACES: dict[str, Callable[[Sequence[int]], list[int]]] = {
    "side by side": _beside,
    "gaps": lambda counts: [
        begin + 3 * index + 1 for index, begin in enumerate(_beside(counts))
    ],
    "backwards": lambda counts: [
        sum(counts) - begin - count
        for begin, count in zip(_beside(counts), counts, strict=True)
    ],
    "backwards with gaps": lambda counts: [
        sum(counts) - begin - count + 2 * (len(counts) - index)
        for index, (begin, count) in enumerate(
            zip(_beside(counts), counts, strict=True)
        )
    ],
}

# By form: what makes recvbuf from a buffer, counts, displacements and the items' type.
FORMS: dict[str, Callable[[Any, list[int], list[int], MPI.Datatype], Any]] = {
    "[data, counts, displs, type]": lambda data, counts, displs, kind: [
        *(data, counts, displs, kind)
    ],
    "[data, (counts, displs), type]": lambda data, counts, displs, kind: [
        *(data, (tuple(counts), np.array(displs)), kind)
    ],
    "(data, arrays, type)": lambda data, counts, displs, kind: (
        *(data, np.array(counts, "i4"), array.array("q", displs), kind),
    ),
}

# By form: what makes sendbuf from a buffer, a count and the items' type.
SENDS: dict[str, Callable[[Any, int, MPI.Datatype], Any]] = {
    "[data, count, type]": lambda data, count, kind: [data, count, kind],
    "[data, (count, displ), type]": lambda data, count, kind: [data, (count, 1), kind],
    "None": lambda *_: None,
    "IN_PLACE": lambda *_: MPI.IN_PLACE,
}

ROWS = pairwise(
    {
        "share": list(SHARES),
        "place": list(PLACES),
        "form": list(FORMS),
        "send": list(SENDS),
        "owner": list(OWNERS),
        # Interleaved items overlap: received ones would overwrite each other.
        "recv_kind": [name for name in TYPES if name != "interleaved"],
        "send_kind": list(TYPES),
    }
)


def outcome(
    gather: Callable[..., None], comm: MPI.Intracomm, row: dict[str, Any]
) -> bytes:
    """Gather as a row of ROWS says; return the whole memory of recvbuf afterwards."""
    rank, size = comm.rank, comm.size
    shares = [SHARES[row["share"]](each, size) for each in range(size)]
    with Kind(row["recv_kind"]) as kind, Kind(row["send_kind"]) as own:
        counts = [share * kind.items_per_unit for share in shares]
        displs = PLACES[row["place"]](counts)
        room = kind.spanned_doubles(sum(shares) + 4 * size + 4)
        place = Owner(row["owner"], np.arange(room) - 1e6 * (rank + 1))
        recv = FORMS[row["form"]](place.buffer, counts, displs, kind.datatype)
        mine = np.arange(own.spanned_doubles(shares[rank] + 1) + 60.0) + 1e3 * (
            rank + 1
        )
        count = shares[rank] * own.items_per_unit
        gather(SENDS[row["send"]](mine, count, own.datatype), recv)
        return place.tobytes()


@pytest.mark.parametrize("part", range(4))
def test_pairs(comm: Intracomm, part: int) -> None:
    """The result equals the MPI library's for each pair of two factors' values."""
    for row in ROWS[part::4]:
        expected = outcome(super(Intracomm, comm).Allgatherv, comm, row)
        assert outcome(comm.Allgatherv, comm, row) == expected, row


def _all(nitems: int, size: int) -> list[int]:
    """Return the counts that mpi4py assumes if none are given: all items, shared."""
    each, more = divmod(nitems, size)
    return [each + (rank < more) for rank in range(size)]


def _threes(_: int, size: int) -> list[int]:
    """Return three items for each rank."""
    return [3] * size


def _few(_: int, size: int) -> list[int]:
    """Return from none to three items for each rank."""
    return [rank % 4 for rank in range(size)]


# By form: what makes recvbuf from a buffer and counts; what computes the counts that
# this form means, from the buffer's items and the number of ranks; and whether the
# items are doubles, rather than of the buffer's own type.
INFERRED: dict[str, tuple[Callable[[Any, list[int]], Any], Callable[..., Any], bool]]
INFERRED = {
    "data": (lambda data, _: data, _all, False),
    "[data, type]": (lambda data, _: [data, MPI.DOUBLE], _all, True),
    "[data, None]": (lambda data, _: [data, None], _all, False),
    "[data, None, None, type]": (lambda data, _: [data, None, None, "d"], _all, True),
    "[data, counts]": (lambda data, counts: [data, counts], _few, False),
    "[data, counts, None]": (lambda data, counts: [data, counts, None], _few, False),
    "[data, (counts, None)]": (lambda data, cs: [data, (cs, None)], _few, False),
    "[data, (counts, stride)]": (lambda data, cs: [data, (cs, 5)], _few, False),
    "(data, (counts, displs))": (
        lambda data, counts: (
            data,
            (counts, [4 * at + 1 for at in range(len(counts))]),
        ),
        _few,
        False,
    ),
    "[data, number]": (lambda data, _: [data, 3], _threes, False),
    "[data, number, stride, type]": (lambda data, _: [data, 3, 4, "d"], _threes, True),
}


@pytest.mark.parametrize("form", INFERRED)
def test_inferred(comm: Intracomm, form: str) -> None:
    """Items, counts and displacements that are not given are inferred as by mpi4py."""
    make_message, counts_of, doubles = INFERRED[form]
    rank, size = comm.rank, comm.size
    for owner, extra in itertools.product(OWNERS, (0, 2, 2 * size - 2)):

        def run(
            gather: Callable[..., None], owner: str = owner, extra: int = extra
        ) -> bytes:
            place = Owner(owner, np.full(12 * size + extra, -1.0))
            item_bytes = 8 if doubles else place.item_bytes
            counts = counts_of(len(place.tobytes()) // item_bytes, size)
            nbytes = counts[rank] * item_bytes
            sent = np.arange(rank, rank + nbytes).astype(np.uint8)
            gather([sent, nbytes, MPI.BYTE], make_message(place.buffer, counts))
            return place.tobytes()

        assert run(comm.Allgatherv) == run(super(Intracomm, comm).Allgatherv), owner


@pytest.mark.parametrize("settings", [{}, {"eager_bytes": 0}, {"chains": 2}])
@pytest.mark.parametrize("fault", ["", "loss=0.1,dup=0.02,reorder=0.05"])
def test_sizes(
    make_comm: Make, settings: dict[str, object], fault: str, seed: int
) -> None:
    """Blocks of random sizes arrive, with and without loss; gaps stay untouched."""
    comm = make_comm(**settings, fault=f"{fault},seed={seed}" if fault else "")
    random = np.random.default_rng(seed)
    sizes = np.array([0, 0, 1, 511, 512, 513, 1024, 7919, 30_000])
    turns = 12
    for turn in range(turns):
        counts = random.choice(sizes, comm.size).tolist()
        gaps = random.integers(0, 100, comm.size + 1)
        displs = (np.cumsum(gaps[:-1]) + _beside(counts)).tolist()
        blocks = [random.integers(0, 256, count, np.uint8) for count in counts]
        place = np.full(sum(counts) + gaps.sum(), 0xA5, np.uint8)
        expected = place.copy()
        for block, begin in zip(blocks, displs, strict=True):
            expected[begin : begin + len(block)] = block
        comm.Allgatherv(blocks[comm.rank], [place, (counts, displs)])
        assert np.array_equal(place, expected), (turn, counts)
    if comm.size > 1:
        assert started(comm) == turns


def test_one_block_is_more_than_a_window(make_comm: Make) -> None:
    """One rank's block of 1 MiB, more than a window, arrives; all others are empty."""
    comm = make_comm(chunk_bytes=0)
    data = np.random.default_rng(1).integers(0, 256, 1 << 20, np.uint8)
    for root in range(min(comm.size, 3)):
        counts = [data.size * (rank == root) for rank in range(comm.size)]
        place = np.zeros_like(data)
        comm.Allgatherv(data[: counts[comm.rank]], [place, counts])
        assert np.array_equal(place, data)


def test_ranks_place_blocks_differently(comm: Intracomm) -> None:
    """Displacements, gaps and types of recvbuf may differ from rank to rank."""
    rank, size = comm.rank, comm.size
    for step in (1, 2):
        strided = rank % 2 == step % 2
        kind = MPI.DOUBLE.Create_vector(1, 1, 1).Create_resized(0, 16 if strided else 8)
        kind.Commit()
        counts = [100 * (each + 1) for each in range(size)]
        displs = [
            begin + rank * (each + 1) for each, begin in enumerate(_beside(counts))
        ]
        place = np.full(2 * (sum(counts) + rank * (size + 1)) + 2, -1.0)
        comm.Allgatherv(
            np.full(counts[rank], float(rank)), [place, counts, displs, kind]
        )
        expected = np.full_like(place, -1.0)
        wide = 2 if strided else 1
        for each, (count, begin) in enumerate(zip(counts, displs, strict=True)):
            expected[wide * begin : wide * (begin + count) : wide] = each
        assert np.array_equal(place, expected)
        kind.Free()


def test_all_ranks_choose_one_path(make_comm: Make) -> None:
    """Whether blocks are multicast follows from all bytes, not from a block or a form.

    One rank contributes everything, and odd ranks pass another form. Of the four totals
    two reach MIN_BYTES a rank.
    """
    comm = make_comm(min_bytes=1000)
    size = comm.size
    for total in (1000 * size - 1, 1000 * size, 1003 * size, 8):
        counts = [total * (each == size - 1) for each in range(size)]
        place = np.zeros(total + 4, np.uint8)
        forms = [[place, counts], [place, (counts, [4] * size), MPI.BYTE]]
        shift = 4 * (comm.rank % 2)
        comm.Allgatherv(np.full(counts[comm.rank], 7, "u1"), forms[comm.rank % 2])
        assert (place[shift : shift + total] == 7).all()
        assert place.sum() == 7 * total
    assert started(comm) == (2 if size > 1 else 0)


FROZEN = np.zeros(60)
FROZEN.flags.writeable = False

# By name: what makes a sendbuf and a recvbuf that mpi4py refuses, given the number of
# ranks.
BAD: dict[str, Callable[[int], tuple[Any, Any]]] = {
    "number to receive into": lambda _: (np.zeros(1), 3),
    "None to receive into": lambda _: (np.zeros(1), None),
    "number to send": lambda size: (3.0, np.zeros(size)),
    "too many items": lambda size: (np.zeros(1), [np.zeros(size), 1, 0, "d", 5]),
    "one item": lambda size: (np.zeros(1), [np.zeros(size)]),
    "strided place": lambda size: (np.zeros(1), np.zeros(4 * size)[::2]),
    "read-only place": lambda _: (np.zeros(1), FROZEN),
    "bad code": lambda size: (np.zeros(1), [np.zeros(size), "zz"]),
    "type is a number": lambda size: (np.zeros(1), [np.zeros(size), 1, 5]),
    "null type": lambda size: (np.zeros(1), [np.zeros(size), MPI.DATATYPE_NULL]),
    "no multiple of the type": lambda _: (np.zeros(1), [bytearray(7), "d"]),
    "dates": lambda size: (np.zeros(1), np.zeros(size, "M8[s]")),
    "too many counts": lambda size: (
        np.zeros(1),
        [np.zeros(size), [1] * (size + 1)],
    ),
    "too few displacements": lambda size: (
        np.zeros(1),
        [np.zeros(size), [1] * size, [0] * (size - 1), "d"],
    ),
    "counts and displacements in a list": lambda size: (
        np.zeros(1),
        [np.zeros(size), [[1] * size, [0] * size]],
    ),
    "counts in a tuple": lambda size: (np.zeros(1), [np.zeros(size), (1,) * 5]),
    "one count in a tuple": lambda size: (np.zeros(1), [np.zeros(size), (1,)]),
    "counts are no numbers": lambda size: (
        np.zeros(1),
        [np.zeros(size), [1.5] * (size + 1)],
    ),
    "counts are no sequence": lambda size: (np.zeros(1), [np.zeros(size), 1.5]),
    "displacements are text": lambda size: (
        np.zeros(1),
        [np.zeros(size), ([1] * size, "x" * size)],
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_mistakes(comm: Intracomm, name: str) -> None:
    """A mistake raises what mpi4py raises, before any communication."""
    messages = BAD[name](comm.size)
    check_mistake(comm, "Allgatherv", messages)
    comm.Allgatherv(np.zeros(9), np.zeros(9 * comm.size))


def test_mistakes_with_counts(comm: Intracomm) -> None:
    """A negative count, or a count other than what this rank sends, is an error."""
    if comm.size == 1:
        return  # Open MPI does not check the counts of a single rank.
    place = np.zeros(10 * comm.size)
    with pytest.raises(MPI.Exception) as caught:
        comm.Allgatherv(np.zeros(1), [place, [-1] * comm.size])
    assert caught.value.Get_error_class() == MPI.ERR_COUNT
    if comm.rank == comm.size - 1:
        with pytest.raises(Error, match="sends 16 bytes, but recvbuf has 24 bytes"):
            comm.Allgatherv(np.zeros(2), [place, 3])
    comm.Allgatherv(np.full(3, comm.rank), [place, 3, "d"])


def test_none_for_no_items(comm: Intracomm) -> None:
    """None serves as a buffer of no items, for sending and for receiving."""
    nothing = [None, [0] * comm.size, MPI.DOUBLE]
    comm.Allgatherv([None, 0, MPI.DOUBLE], nothing)
    comm.Allgatherv(None, nothing)
    comm.Allgatherv(b"", bytearray())


def test_absolute_addresses(comm: Intracomm) -> None:
    """Displacements from MPI.BOTTOM are absolute addresses."""
    place = np.full(UNIT_BYTES * comm.size + 5, 0xEE, np.uint8)
    kind = MPI.Datatype.Create_struct([5], [place.ctypes.data], [MPI.BYTE])
    kind = kind.Create_resized(0, 8).Commit()
    displs = list(range(0, 2 * comm.size, 2))
    sent = np.full(5, comm.rank, np.uint8)
    comm.Allgatherv(sent, [MPI.BOTTOM, [1] * comm.size, displs, kind])
    kind.Free()
    expected = np.full_like(place, 0xEE)
    for rank in range(comm.size):
        expected[16 * rank : 16 * rank + 5] = rank
    assert np.array_equal(place, expected)
