# SPDX-License-Identifier: BSD-3-Clause
"""Bcast does what the MPI library's Bcast does, with all kinds of buffers and roots."""

from __future__ import annotations

import itertools
import mmap
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from gathering import started
from kinds import OWNERS, TYPES, Kind, Owner, check_mistake, pairwise
from mpi4py import MPI

from mpimcast import Intracomm

Make = Callable[..., Intracomm]

# The number of bytes on either side of the data. A Bcast must not change these bytes.
GUARD_BYTES = 64

# The CHUNK_BYTES that lets a chunk be as long as the path's MTU allows.
AS_THE_MTU_ALLOWS = 0


@pytest.fixture
def comm(shared_comm: Intracomm) -> Intracomm:
    """Return a communicator that the tests of this file share. They leave it usable."""
    return shared_comm


# For each choice of a root, a function of the number of ranks that returns the root.
ROOTS: dict[str, Callable[[int], int]] = {
    "first": lambda _: 0,
    "middle": lambda size: size // 2,
    "last": lambda size: size - 1,
}

# For each form of a message, a function that makes a message of this form. It takes a
# buffer, the number of items and their type.
FORMS: dict[str, Callable[[Any, int, MPI.Datatype], Any]] = {
    "[data, count, type]": lambda data, count, type_: [data, count, type_],
    "(data, (count, displ), type)": lambda data, count, type_: (
        data,
        (count, 1),
        type_,
    ),
    "[data, count, displ, type]": lambda data, count, type_: [data, count, 2, type_],
}

# The combinations that test_pairs tries. The root passes items of the type `root_kind`,
# and the other ranks pass items of `other_kind`. The length of a message is counted in
# units of 32 bytes of data, since the sizes of items differ (kinds.py).
ROWS = pairwise(
    {
        "owner": list(OWNERS),
        "form": list(FORMS),
        "root_kind": list(TYPES),
        "other_kind": list(TYPES),
        "root": list(ROOTS),
        "nunits": [0, 1, 5, 300],
    }
)


def outcome(
    bcast: Callable[..., None], comm: MPI.Intracomm, row: dict[str, Any]
) -> bytes:
    """Broadcast as one of ROWS says, and return the whole memory of the buffer."""
    root = ROOTS[row["root"]](comm.size)
    name = row["root_kind"] if comm.rank == root else row["other_kind"]
    with Kind(name) as kind:
        nunits = row["nunits"]
        nitems = nunits * kind.items_per_unit
        # This sum counts doubles. First come those that the message and two more units
        # span. In some FORMS the message begins one or two items after the start of the
        # memory. Two items extend over extent_bytes / 4 doubles, so 2 * extent_bytes is
        # more than enough. What lies after the message, at least those two units and
        # three doubles, shows whether Bcast writes past the message.
        extent_bytes = kind.datatype.Get_extent()[1]
        memory_doubles = kind.spanned_doubles(nunits + 2) + 2 * extent_bytes + 3
        owner = Owner(row["owner"], np.arange(memory_doubles) + 1e6 * (comm.rank + 1))
        bcast(FORMS[row["form"]](owner.buffer, nitems, kind.datatype), root)
        return owner.tobytes()


@pytest.mark.parametrize("part", range(4))
def test_pairs(comm: Intracomm, part: int) -> None:
    """For each row of ROWS, Bcast leaves the same memory as the MPI library's Bcast."""
    for row in ROWS[part::4]:
        expected = outcome(super(Intracomm, comm).Bcast, comm, row)
        if comm.rank == ROOTS[row["root"]](comm.size):
            # A Bcast must not change the root's memory, so the reference is the memory
            # without any Bcast. MPICH's Bcast is no reference: MPICH 5.0.2 changes the
            # root's memory if the items of the other ranks' datatype overlap.
            expected = outcome(lambda *_: None, comm, row)
        assert outcome(comm.Bcast, comm, row) == expected, row


@pytest.mark.parametrize("owner", OWNERS)
def test_inferred(comm: Intracomm, owner: str) -> None:
    """A message may lack its count, its type or both, as in mpi4py."""
    for root, form in itertools.product(range(comm.size), range(3)):

        def run(
            bcast: Callable[..., None], root: int = root, form: int = form
        ) -> bytes:
            data = Owner(owner, np.arange(60.0) + 1e3 * comm.rank)
            forms = [data.buffer, [data.buffer, MPI.DOUBLE], [data.buffer, 3]]
            bcast(forms[form], root)
            return data.tobytes()

        assert run(comm.Bcast) == run(super(Intracomm, comm).Bcast), (root, form)


@pytest.mark.parametrize(
    "settings", [{}, {"eager_bytes": 0}, {"chunk_bytes": AS_THE_MTU_ALLOWS}]
)
@pytest.mark.parametrize("fault", ["", "loss=0.1,dup=0.02,reorder=0.05"])
def test_sizes(
    make_comm: Make, settings: dict[str, object], fault: str, seed: int
) -> None:
    """Data of various sizes arrives, and the memory on either side is not written.

    Some sizes are one byte more or less than a multiple of 512, the chunk size in tests
    that set no other. In half of the runs, datagrams are lost, duplicated and
    reordered.
    """
    comm = make_comm(**settings, fault=f"{fault},seed={seed}" if fault else "")
    sizes = (0, 1, 2, 511, 512, 513, 1025, 7919, 65537)
    for index, nbytes in enumerate(sizes):
        root = index % comm.size
        data = np.random.default_rng((index, seed)).integers(0, 256, nbytes, np.uint8)
        guarded = np.full(nbytes + 2 * GUARD_BYTES, 0xA5, np.uint8)
        place = guarded[GUARD_BYTES : GUARD_BYTES + nbytes]
        if comm.rank == root:
            place[:] = data
        comm.Bcast(place, root)
        assert np.array_equal(place, data), nbytes
        assert (guarded[:GUARD_BYTES] == 0xA5).all()
        assert (guarded[GUARD_BYTES + nbytes :] == 0xA5).all()
    if comm.size > 1:
        # mpimcast has carried every Bcast; the MPI library has carried none.
        assert started(comm) == len(sizes)


def test_more_than_a_window(make_comm: Make) -> None:
    """Data of 3 MiB, which is more than the window, arrives."""
    comm = make_comm(chunk_bytes=AS_THE_MTU_ALLOWS)
    data = np.random.default_rng(1).integers(0, 256, 3 << 20, np.uint8)
    for root in range(min(comm.size, 3)):
        place = data.copy() if comm.rank == root else np.zeros_like(data)
        comm.Bcast(place, root)
        assert np.array_equal(place, data)


def test_read_only_buffers(comm: Intracomm) -> None:
    """The root may pass read-only memory."""
    for root in range(comm.size):
        place: Any = bytes(range(200)) if comm.rank == root else bytearray(200)
        comm.Bcast(place, root)
        assert place == bytes(range(200))
    with mmap.mmap(-1, 9000, prot=mmap.PROT_READ) as zeros:
        place = zeros if comm.rank == 0 else bytearray(b"x" * 9000)
        comm.Bcast(place, 0)
        assert bytes(place) == bytes(9000)


def test_buffers_may_change_after_return(comm: Intracomm) -> None:
    """The root may change its data after Bcast. Slower ranks still get the old data."""
    places = [np.full(2000, index if comm.rank == 0 else -1) for index in range(30)]
    for index, place in enumerate(places):
        comm.Bcast(place, 0)
        assert (place == index).all()
        place.fill(99)
    comm.Barrier()
    assert all((place == 99).all() for place in places)


def test_none_and_absolute_addresses(comm: Intracomm) -> None:
    """The buffer of an empty message may be None, and a type may hold addresses."""
    comm.Bcast([None, 0, MPI.DOUBLE], comm.size - 1)
    data = np.full(50, comm.rank)
    datatype = MPI.Datatype.Create_struct(
        [20, 10], [MPI.Get_address(data[30:]), MPI.Get_address(data)], [MPI.INT64_T] * 2
    ).Commit()
    comm.Bcast([MPI.BOTTOM, 1, datatype], comm.size - 1)
    datatype.Free()
    expected = np.full(50, comm.size - 1)
    expected[10:30] = comm.rank
    assert np.array_equal(data, expected)


def test_all_ranks_agree_on_what_carries_a_bcast(make_comm: Make) -> None:
    """All ranks decide by the size of a Bcast alone whether mpimcast carries it.

    The ranks pass messages of different forms. Two of the five sizes are at least
    MIN_BYTES. mpimcast carries these two Bcasts, and the MPI library the other three.
    """
    comm = make_comm(min_bytes=1000)
    for nbytes in (999, 1000, 8, 4000, 992):
        mine = bytearray([comm.rank]) * nbytes
        forms = [np.frombuffer(mine, np.uint8), mine, [mine, nbytes, MPI.BYTE]]
        comm.Bcast(forms[comm.rank % 3], 0)
        assert mine == bytes(nbytes)
    assert started(comm) == (2 if comm.size > 1 else 0)


# An array whose memory is read-only.
FROZEN = np.zeros(60)
FROZEN.flags.writeable = False

# For each mistake, a function that returns arguments for Bcast, given the number of
# ranks. mpi4py refuses these arguments.
BAD: dict[str, Callable[[int], tuple[Any, ...]]] = {
    "number": lambda _: (3,),
    "None": lambda _: (None,),
    "too many entries": lambda _: ([np.zeros(1), 1, 0, "d", 5],),
    "strided": lambda _: (np.zeros(60)[::2],),
    "negative count": lambda _: ([np.zeros(1), -1, "d"],),
    "bad code": lambda _: ([np.zeros(1), "zz"],),
    "dates": lambda _: (np.zeros(1, "M8[s]"),),
    "null type": lambda _: ([np.zeros(1), MPI.DATATYPE_NULL],),
    "no such root": lambda size: (np.zeros(1), size),
    "negative root": lambda _: (np.zeros(1), -7),
    "root PROC_NULL": lambda _: (np.zeros(1), MPI.PROC_NULL),
    "root ROOT": lambda _: (np.zeros(1), MPI.ROOT),
    "root is text": lambda _: (np.zeros(1), "0"),
    "root is None": lambda _: (np.zeros(1), None),
}


@pytest.mark.parametrize("name", BAD)
def test_mistakes(comm: Intracomm, name: str) -> None:
    """A mistake raises the same error as in mpi4py, before any communication."""
    arguments = BAD[name](comm.size)
    check_mistake(comm, "Bcast", arguments)
    comm.Bcast(np.zeros(9))


def test_a_mistake_can_be_corrected(comm: Intracomm) -> None:
    """After a rank has passed a bad buffer or root, its next call can succeed."""
    if comm.size > 1 and comm.rank == comm.size - 1:
        with pytest.raises(Exception, match=r"read-?only|not writ"):
            comm.Bcast(FROZEN, 0)
        with pytest.raises(MPI.Exception):
            comm.Bcast(np.zeros(60), comm.size)
    place = np.full(60, float(comm.rank))
    comm.Bcast(place, 0)
    assert not place.any()


def test_roots_that_disagree(make_comm: Make) -> None:
    """If ranks pass different roots, all ranks raise an error."""
    comm = make_comm()
    if comm.size == 1:
        return
    with pytest.raises(Exception, match="disagree"):
        comm.Bcast(np.zeros(100_000), 0 if comm.rank else 1)


def test_roots_of_other_number_types(comm: Intracomm) -> None:
    """A root may be a number of any type that mpi4py accepts."""
    for root in (0, False, np.int64(0), 0.0):
        place = np.full(10, comm.rank)
        comm.Bcast(place, root)  # type: ignore[arg-type]
        assert not place.any()
