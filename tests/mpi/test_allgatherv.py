# SPDX-License-Identifier: BSD-3-Clause
"""Allgatherv compared with the MPI library's, for all data and all places."""

from __future__ import annotations

import array
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from kinds import OWNERS, TYPES, UNIT_BYTES, Kind, Owner, check_mistake, pairwise
from mpi4py import MPI

from mpimcast import Error, Intracomm

Make = Callable[..., Intracomm]


@pytest.fixture
def comm(shared: Intracomm) -> Intracomm:
    """Return a communicator that all tests here leave as it was."""
    return shared


# Number of units that each rank contributes.
SHARES: dict[str, Callable[[int, int], int]] = {
    "equal": lambda _rank, _size: 3,
    "uneven": lambda rank, _size: (7 * rank + 2) % 5 + 1,
    "some nothing": lambda rank, _size: rank % 2 * (rank + 2),
    "last only": lambda rank, size: 9 * (rank == size - 1),
    "first much": lambda rank, _size: 1 if rank else 400,
    "nothing": lambda _rank, _size: 0,
}


def _beside(counts: Sequence[int]) -> list[int]:
    return [0, *itertools.accumulate(counts[:-1])]


# Beginnings of the blocks, in items, by name.
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
        # Items that reach into the next one would overwrite each other on receipt.
        "recv_kind": [name for name in TYPES if name != "interleaved"],
        "send_kind": list(TYPES),
    }
)


def outcome(
    gather: Callable[..., None], comm: MPI.Intracomm, row: dict[str, Any]
) -> bytes:
    """Gather as a row says, and return the whole memory."""
    rank, size = comm.rank, comm.size
    shares = [SHARES[row["share"]](each, size) for each in range(size)]
    with Kind(row["recv_kind"]) as kind, Kind(row["send_kind"]) as own:
        counts = [share * kind.per_unit for share in shares]
        displs = PLACES[row["place"]](counts)
        room = kind.doubles(sum(shares) + 4 * size + 4)
        place = Owner(row["owner"], np.arange(room) - 1e6 * (rank + 1))
        recv = FORMS[row["form"]](place.made, counts, displs, kind.datatype)
        mine = np.arange(own.doubles(shares[rank] + 1) + 60.0) + 1e3 * (rank + 1)
        count = shares[rank] * own.per_unit
        gather(SENDS[row["send"]](mine, count, own.datatype), recv)
        return place.tobytes()


@pytest.mark.parametrize("part", range(4))
def test_pairs(comm: Intracomm, part: int) -> None:
    """Each pair of memory, type, form, share and place gives the library's result."""
    for row in ROWS[part::4]:
        expected = outcome(super(Intracomm, comm).Allgatherv, comm, row)
        assert outcome(comm.Allgatherv, comm, row) == expected, row


def _all(nitems: int, size: int) -> list[int]:
    """Return the counts that mpi4py assumes if none are given."""
    each, more = divmod(nitems, size)
    return [each + (rank < more) for rank in range(size)]


def _threes(_: int, size: int) -> list[int]:
    return [3] * size


def _few(_: int, size: int) -> list[int]:
    return [rank % 4 for rank in range(size)]


# By form: what makes the message of a buffer and counts, what makes the counts, and
# whether items are doubles rather than the buffer's own.
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
    make, rule, doubles = INFERRED[form]
    rank, size = comm.rank, comm.size
    for owner, extra in itertools.product(OWNERS, (0, 2, 2 * size - 2)):

        def run(
            gather: Callable[..., None], owner: str = owner, extra: int = extra
        ) -> bytes:
            place = Owner(owner, np.full(12 * size + extra, -1.0))
            item = 8 if doubles else place.item_bytes
            counts = rule(len(place.tobytes()) // item, size)
            count = counts[rank] * item
            sent = np.arange(rank, rank + count).astype(np.uint8)
            gather([sent, count, MPI.BYTE], make(place.made, counts))
            return place.tobytes()

        assert run(comm.Allgatherv) == run(super(Intracomm, comm).Allgatherv), owner


@pytest.mark.parametrize("settings", [{}, {"eager_bytes": 0}, {"chains": 2}])
@pytest.mark.parametrize("fault", ["", "loss=0.1,dup=0.02,reorder=0.05"])
def test_sizes(make: Make, settings: dict[str, object], fault: str, seed: int) -> None:
    """Blocks of random sizes arrive, under loss too, and gaps stay untouched."""
    comm = make(**settings, fault=f"{fault},seed={seed}" if fault else "")
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
        assert comm.stats()["epochs"] == turns


def test_one_rank_has_a_mebibyte(make: Make) -> None:
    """A block above the window arrives from one rank beside empty blocks of others."""
    comm = make(chunk_bytes=0)
    data = np.random.default_rng(1).integers(0, 256, 1 << 20, np.uint8)
    for root in range(min(comm.size, 3)):
        counts = [data.size * (rank == root) for rank in range(comm.size)]
        place = np.zeros_like(data)
        comm.Allgatherv(data[: counts[comm.rank]], [place, counts])
        assert np.array_equal(place, data)


def test_own_places(comm: Intracomm) -> None:
    """Displacements, gaps and types may differ from rank to rank."""
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


def test_the_way_is_every_ranks(make: Make) -> None:
    """The total of bytes decides for multicast, not a rank's share or its form."""
    comm = make(min_bytes=1000)
    size = comm.size
    for total in (1000 * size - 1, 1000 * size, 1003 * size, 8):
        counts = [total * (each == size - 1) for each in range(size)]
        place = np.zeros(total + 4, np.uint8)
        forms = [[place, counts], [place, (counts, [4] * size), MPI.BYTE]]
        shift = 4 * (comm.rank % 2)
        comm.Allgatherv(np.full(counts[comm.rank], 7, "u1"), forms[comm.rank % 2])
        assert (place[shift : shift + total] == 7).all()
        assert place.sum() == 7 * total
    assert comm.stats()["epochs"] == (2 if size > 1 else 0)


FROZEN = np.zeros(60)
FROZEN.flags.writeable = False

BAD: dict[str, Callable[[int], tuple[Any, Any]]] = {
    "no buffer": lambda _: (np.zeros(1), 3),
    "nowhere": lambda _: (np.zeros(1), None),
    "no send buffer": lambda size: (3.0, np.zeros(size)),
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
    "a list is counts": lambda size: (
        np.zeros(1),
        [np.zeros(size), [[1] * size, [0] * size]],
    ),
    "a tuple is both": lambda size: (np.zeros(1), [np.zeros(size), (1,) * 5]),
    "a tuple of one": lambda size: (np.zeros(1), [np.zeros(size), (1,)]),
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
        return  # Open MPI checks nothing then
    place = np.zeros(10 * comm.size)
    with pytest.raises(MPI.Exception) as caught:
        comm.Allgatherv(np.zeros(1), [place, [-1] * comm.size])
    assert caught.value.Get_error_class() == MPI.ERR_COUNT
    if comm.rank == comm.size - 1:
        with pytest.raises(Error, match="sends 16 bytes, but recvbuf has 24 bytes"):
            comm.Allgatherv(np.zeros(2), [place, 3])
    comm.Allgatherv(np.full(3, comm.rank), [place, 3, "d"])


def test_nothing(comm: Intracomm) -> None:
    """None is a buffer for no items, also for all ranks' places."""
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
