# SPDX-License-Identifier: BSD-3-Clause
"""Every form of buffer that mpi4py takes, compared with the MPI library's result."""

from __future__ import annotations

import array
from collections.abc import Callable

import numpy as np
import pytest
from kinds import DERIVED, Tensor, spanned_doubles
from mpi4py import MPI

from mpimcast import Intracomm

Forms = Callable[[int, int], tuple[object, object, np.ndarray]]


@pytest.fixture
def comm(shared_comm: Intracomm) -> Intracomm:
    """Return one communicator for all tests here, none of which spoils it."""
    return shared_comm


# How many doubles each rank contributes.
N = 30


def sent(rank: int, count: int = N) -> np.ndarray:
    """Return `count` doubles that depend on the rank."""
    return np.arange(count, dtype=float) + 1000 * (rank + 1)


def place(size: int, count: int = N) -> np.ndarray:
    """Return memory for `count` doubles of each rank."""
    return np.full(size * count, -1.0)


def same(form: Callable[[np.ndarray], object]) -> Forms:
    """Return a maker of both buffers in one form, which lets mpi4py infer the count."""

    def make(rank: int, size: int) -> tuple[object, object, np.ndarray]:
        where = place(size)
        return form(sent(rank)), form(where), where

    return make


def both(
    send: Callable[[np.ndarray], object], recv: Callable[[np.ndarray], object]
) -> Forms:
    """Return a maker of buffers in two forms, which give counts or displacements.

    The memory has twice the room that is needed, for the displacements.
    """

    def make(rank: int, size: int) -> tuple[object, object, np.ndarray]:
        where = place(size, 2 * N)
        return send(sent(rank, 2 * N)), recv(where), where

    return make


def in_place(sendbuf: object) -> Forms:
    """Return a maker of a `recvbuf` in which this rank's block already is."""

    def make(rank: int, size: int) -> tuple[object, object, np.ndarray]:
        where = place(size)
        where[rank * N : (rank + 1) * N] = sent(rank)
        return sendbuf, where, where

    return make


def fortran(rank: int, size: int) -> tuple[object, object, np.ndarray]:
    """Make arrays whose first index varies fastest."""
    where = np.asfortranarray(place(size).reshape(-1, size))
    return np.asfortranarray(sent(rank).reshape(5, 6)), where, where


# By the name of a form: what makes sendbuf, recvbuf and the memory behind recvbuf,
# given the rank and the number of ranks.
FORMS: dict[str, Forms] = {
    "array": same(lambda a: a),
    "two dimensions": same(lambda a: a.reshape(-1, 5)),
    "Fortran order": fortran,
    "memoryview": same(memoryview),
    "bytes view": same(lambda a: memoryview(a).cast("B")),
    "MPI.buffer": same(MPI.buffer.frombuffer),
    "DLPack": same(Tensor),
    "complex": same(lambda a: a.view(complex)),
    "small items": same(lambda a: a.view(np.int16)),
    "[data, type]": same(lambda a: [a, MPI.DOUBLE]),
    "(data, type)": same(lambda a: (a, MPI.DOUBLE)),
    "[data, code]": same(lambda a: [a, "d"]),
    "[data, None]": same(lambda a: [a, None]),
    "[DLPack, type]": same(lambda a: [Tensor(a), MPI.DOUBLE]),
    "mixed types": both(lambda a: [a, N, "d"], lambda a: [a, 8 * N, MPI.BYTE]),
    "[data, count]": both(lambda a: [a, N], lambda a: [a, N]),
    "[data, (count, displ)]": both(lambda a: [a, (N, 4)], lambda a: [a, (N, 3)]),
    "[data, count, type]": both(lambda a: [a, N, "d"], lambda a: [a, N, "d"]),
    "[data, count, None]": both(lambda a: [a, N, None], lambda a: [a, N, None]),
    "[data, (count, displ), type]": both(
        lambda a: [a, (N, 2), MPI.DOUBLE], lambda a: [a, [N, 5], "f8"]
    ),
    "[data, count, displ, type]": both(
        lambda a: [a, N, 1, "d"], lambda a: (a, N, None, MPI.DOUBLE)
    ),
    "numpy counts": both(lambda a: [a, np.int32(N)], lambda a: [a, np.int64(N)]),
    "send nothing": both(lambda _: [None, 0, "d"], lambda a: [a, 0]),
    "send and receive nothing": both(
        lambda _: [None, 0, "d"], lambda _: [None, 0, "d"]
    ),
    "None": in_place(None),
    "IN_PLACE": in_place(MPI.IN_PLACE),
}


def compare(comm: Intracomm, forms: Forms, what: str) -> None:
    """Gather by the MPI library and by mpimcast; compare all memory, even in gaps."""
    rank, size = comm.Get_rank(), comm.Get_size()
    send, recv, expected = forms(rank, size)
    MPI.Intracomm.Allgather(comm, send, recv)
    send, recv, got = forms(rank, size)
    comm.Allgather(send, recv)
    assert got.tobytes("A") == expected.tobytes("A"), what


@pytest.mark.parametrize("name", FORMS)
def test_forms(comm: Intracomm, name: str) -> None:
    """The result equals the MPI library's, whatever the form."""
    compare(comm, FORMS[name], name)


def test_buffers_without_numpy(comm: Intracomm) -> None:
    """Buffers need not be numpy's: bytes can be sent, array.array received into."""
    rank, size = comm.Get_rank(), comm.Get_size()
    got = array.array("i", [0] * (4 * size))
    comm.Allgather(bytes([rank]) * 16, got)
    assert got.tobytes() == b"".join(bytes([each]) * 16 for each in range(size))
    place = bytearray(3 * size)
    comm.Allgather([bytes([rank + 1]) * 3, MPI.CHAR], [place, "B"])
    assert place == b"".join(bytes([each + 1]) * 3 for each in range(size))


@pytest.mark.parametrize("send_name", DERIVED)
@pytest.mark.parametrize("recv_name", ["vector", "struct", "out of order", "double"])
@pytest.mark.parametrize("count", [1, 3])
def test_derived(comm: Intracomm, send_name: str, recv_name: str, count: int) -> None:
    """Derived types are read and written to their last byte; gaps are left alone."""
    outgoing = DERIVED[send_name]().Commit()
    if recv_name == "double":
        incoming, per_item = MPI.DOUBLE.Dup(), 4
    else:
        incoming, per_item = DERIVED[recv_name]().Commit(), 1

    def forms(rank: int, size: int) -> tuple[object, object, np.ndarray]:
        where = place(1, spanned_doubles(incoming, count * per_item * size))
        what = sent(rank, spanned_doubles(outgoing, count))
        return [what, count, outgoing], [where, count * per_item, incoming], where

    compare(comm, forms, f"{count} {send_name} to {recv_name}")
    outgoing.Free()
    incoming.Free()


@pytest.mark.parametrize("name", DERIVED)
def test_derived_in_place(comm: Intracomm, name: str) -> None:
    """This rank's block may already be in recvbuf, even if its type has gaps."""
    datatype = DERIVED[name]().Commit()

    def forms(rank: int, size: int) -> tuple[object, object, np.ndarray]:
        where = place(1, spanned_doubles(datatype, 2 * size)) - rank
        return None, [where, 2, datatype], where

    # Blocks of interleaved items would overwrite each other.
    if name != "interleaved":
        compare(comm, forms, name)
    datatype.Free()


def test_absolute_addresses(comm: Intracomm) -> None:
    """A type that holds absolute addresses is sent from MPI.BOTTOM."""
    rank, size = comm.Get_rank(), comm.Get_size()
    first, second = sent(rank, 3), sent(rank + 100, 2)
    datatype = MPI.Datatype.Create_struct(
        [3, 2], [MPI.Get_address(first), MPI.Get_address(second)], [MPI.DOUBLE] * 2
    ).Commit()
    where = place(size, 5)
    comm.Allgather([MPI.BOTTOM, 1, datatype], where)
    expected = [np.concatenate([sent(r, 3), sent(r + 100, 2)]) for r in range(size)]
    assert np.array_equal(where, np.concatenate(expected))
    datatype.Free()


def test_predefined_type_with_a_gap(comm: Intracomm) -> None:
    """The gap behind the int of MPI.DOUBLE_INT is left alone, as by the MPI library."""

    def forms(rank: int, size: int) -> tuple[object, object, np.ndarray]:
        where = np.full(16 * 3 * size, 0xEE, np.uint8)
        what = np.arange(16 * 3, dtype=np.uint8) + rank
        return [what, 3, MPI.DOUBLE_INT], [where, 3, MPI.DOUBLE_INT], where

    compare(comm, forms, "DOUBLE_INT")


STRIDED = np.zeros(60)[::2]
FROZEN = np.zeros(60)
FROZEN.flags.writeable = False

# By name: what makes a sendbuf and a recvbuf that mpi4py refuses, given the number of
# ranks.
BAD: dict[str, Callable[[int], tuple[object, object]]] = {
    "number to receive into": lambda _: (np.zeros(1), 3),
    "number to send": lambda size: (3.0, np.zeros(size)),
    "None to receive into": lambda _: (np.zeros(1), None),
    "too many items": lambda size: ([np.zeros(1), 1, 0, "d", 5], np.zeros(size)),
    "one item": lambda size: (np.zeros(1), [np.zeros(size)]),
    "bad code": lambda size: ([np.zeros(1), "zz"], np.zeros(size)),
    "strided to send": lambda size: (STRIDED, np.zeros(30 * size)),
    "strided place": lambda size: (np.zeros(30), np.zeros(60 * size)[::2]),
    "strided tensor": lambda size: (np.zeros(30), Tensor(np.zeros(60 * size)[::2])),
    "read-only place": lambda size: (np.zeros(1), bytes(8 * size)),
    "read-only array": lambda _: (np.zeros(60), FROZEN),
    "read-only Fortran array": lambda _: (np.zeros(60), FROZEN.reshape(6, 10).T),
    "negative count": lambda size: (np.zeros(1), [np.zeros(size), -1]),
    "negative displacement": lambda size: ([np.zeros(1), (1, -1)], np.zeros(size)),
    "displacement too far": lambda size: ([np.zeros(1), (1, 2), "d"], np.zeros(size)),
    "count of nothing": lambda size: ([None, 1, "d"], np.zeros(size)),
    "count is no number": lambda size: ([np.zeros(1), 1.5, "d"], np.zeros(size)),
    "no multiple of the type": lambda size: ([bytes(7), "d"], np.zeros(size)),
    "dates": lambda size: (np.zeros(1, "M8[s]"), np.zeros(size)),
    "records": lambda size: (np.zeros(1, "i4,f8"), np.zeros(size)),
    "other byte order": lambda size: (np.zeros(1, ">f8"), np.zeros(size)),
    "null type": lambda size: ([np.zeros(1), MPI.DATATYPE_NULL], np.zeros(size)),
    "no multiple of the ranks": lambda size: (np.zeros(1), np.zeros(size + 1)),
    "tensor, no multiple": lambda size: (np.zeros(1), Tensor(np.zeros(size + 1))),
    "typed, no multiple": lambda size: (np.zeros(1), [np.zeros(size + 1), "d"]),
}

INDIVISIBLE = ("no multiple of the ranks", "tensor, no multiple", "typed, no multiple")


@pytest.mark.parametrize("name", BAD)
def test_mistakes(comm: Intracomm, name: str) -> None:
    """A mistake raises what mpi4py raises, before any communication."""
    size = comm.Get_size()
    if size == 1 and name in INDIVISIBLE:
        pytest.skip("everything is a multiple of one rank")
    messages = BAD[name](size)
    with pytest.raises(Exception) as theirs:  # noqa: PT011 -- compared below
        MPI.Intracomm.Allgather(comm, *messages)
    with pytest.raises(theirs.type) as ours:
        comm.Allgather(*messages)
    assert type(ours.value) is type(theirs.value)
    assert str(ours.value) == str(theirs.value)
    comm.Allgather(np.zeros(9), np.zeros(9 * size))


def test_a_mistake_can_be_mended(comm: Intracomm) -> None:
    """If one rank passes bad buffers, it can call again, and the others wait for it."""
    rank, size = comm.Get_rank(), comm.Get_size()
    if rank == size - 1:
        with pytest.raises(TypeError):
            comm.Allgather("nonsense", 7)
    where = place(size)
    comm.Allgather(sent(rank), where)
    assert np.array_equal(where, np.concatenate([sent(r) for r in range(size)]))
