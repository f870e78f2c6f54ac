# SPDX-License-Identifier: BSD-3-Clause
"""The quick check whether a message is small, compared with the parsing of messages."""

from __future__ import annotations

import sys
from array import array
from typing import Any

import numpy as np
import pytest
from mpi4py import MPI
from support import run

from mpimcast._mpi import sizes
from mpimcast._session.collectives import Allgather, Allgatherv, Bcast
from mpimcast._small import Limits

DERIVED = MPI.DOUBLE.Create_contiguous(1).Commit()
ROW = np.arange(12.0)

# Messages of 96 bytes or less on one rank. The quick check knows the first ones.
KNOWN: dict[str, Any] = {
    "array": ROW,
    "integers": np.arange(12, dtype=np.int16),
    "matrix": np.zeros((3, 4)),
    "memoryview": memoryview(ROW),
    "bytearray": bytearray(96),
    "array.array": array("d", [0] * 12),
    "type": [ROW, MPI.DOUBLE],
    "tuple": (ROW, MPI.DOUBLE),
    "pair type": [np.zeros(16, np.uint8), MPI.FLOAT_INT],
    "count": [ROW, 12],
    "less": [ROW, 3],
    "count and type": [ROW, 12, MPI.DOUBLE],
    "other type": [ROW, 24, MPI.FLOAT],
    "count of NumPy's": [ROW, np.int64(12), MPI.DOUBLE],
    "pair": [ROW, (10, 2), MPI.DOUBLE],
    "four items": [ROW, 10, 2, MPI.DOUBLE],
    "nothing": [None, 0, MPI.DOUBLE],
    "no bytes": bytearray(),
}
UNKNOWN: dict[str, Any] = {
    "derived type": [ROW, DERIVED],
    "count and derived type": [ROW, 12, DERIVED],
    "letter": [ROW, "d"],
    "count and letter": [ROW, 12, "d"],
    "no count": [ROW, None, MPI.DOUBLE],
}
# Messages that only an Allgatherv takes.
VECTORS: dict[str, Any] = {
    "counts": [ROW, [12]],
    "counts and type": [ROW, [12], MPI.DOUBLE],
    "counts and displacements": [ROW, ([10], [2])],
    "all four": [ROW, [10], [2], MPI.DOUBLE],
    "NumPy's counts": [ROW, (np.array([10]), np.array([2])), MPI.DOUBLE],
}
WRONG: dict[str, Any] = {
    "None": None,
    "number": 3,
    "empty": [],
    "one item": [ROW],
    "five items": [ROW, 1, 0, MPI.DOUBLE, 0],
    "negative": [ROW, -1, MPI.DOUBLE],
    "huge": [ROW, 1 << 80, MPI.DOUBLE],
    "huge in all": [ROW, [1 << 48, 1 << 48], MPI.DOUBLE],
    "fraction": [ROW, 1.5],
    "word": [ROW, "word", MPI.DOUBLE],
    "empty pair": [ROW, (), MPI.DOUBLE],
    "in place": MPI.IN_PLACE,
}


class Strange:
    """An array that cannot say its size."""

    @property
    def nbytes(self) -> int:
        """Raise an error of its own."""
        raise RuntimeError("no size")


def of(limit: int) -> Limits:
    """Return the limits of messages that consist of one block."""
    sizes.learn()
    limits = Limits()
    limits.set(limit, limit)
    return limits


def parsed(name: str, message: Any) -> int:
    """Return the size that decides what carries a collective of one rank."""
    comm = MPI.COMM_SELF
    if name == "small_block":
        return Bcast(comm, message, 0).nbytes
    kind = Allgather if name == "small_blocks" else Allgatherv
    return kind(comm, MPI.IN_PLACE, message).nbytes


METHODS = ("small_block", "small_blocks", "small_vector")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", KNOWN)
def test_known(name: str, method: str) -> None:
    """A message is small exactly if its bytes are below the limit."""
    message = KNOWN[name]
    nbytes = parsed(method, message)
    if name not in {"pair type", "no bytes", "nothing"}:
        assert nbytes in {24, 80, 96}
    for limit in (nbytes, nbytes + 1):
        assert getattr(of(limit), method)(message) == (nbytes < limit)


@pytest.mark.parametrize("name", VECTORS)
def test_vectors(name: str) -> None:
    """The counts of all blocks are added up."""
    nbytes = parsed("small_vector", VECTORS[name])
    assert nbytes in {80, 96}
    for limit in (nbytes, nbytes + 1):
        assert of(limit).small_vector(VECTORS[name]) == (nbytes < limit)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", UNKNOWN)
def test_unknown(name: str, method: str) -> None:
    """Other messages are left to be parsed."""
    assert parsed(method, UNKNOWN[name]) == 96
    assert not getattr(of(1000), method)(UNKNOWN[name])


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", WRONG)
def test_wrong(name: str, method: str) -> None:
    """Wrong messages, too; the check itself raises nothing."""
    assert not getattr(of(1000), method)(WRONG[name])


@pytest.mark.parametrize("method", METHODS)
def test_errors_are_not_ours(method: str) -> None:
    """An array whose size raises an error is left to be parsed."""
    assert not getattr(of(1000), method)(Strange())
    assert not getattr(of(1000), method)([Strange(), 1])


def test_results_and_blocks() -> None:
    """A whole message is compared with one limit, a count of one block with another."""
    limits = of(0)
    limits.set(400, 100)
    assert limits.small_blocks(np.zeros(49))
    assert not limits.small_blocks(np.zeros(50))
    assert not limits.small_block(np.zeros(49))
    assert limits.small_blocks([np.zeros(48), 12, MPI.DOUBLE])
    assert not limits.small_blocks([np.zeros(48), 13, MPI.DOUBLE])
    assert limits.small_vector([ROW, [20, 29]])
    assert not limits.small_vector([ROW, [20, 30]])
    assert not limits.small_vector([ROW, 13])
    # What a list means in the place of the count depends on the collective.
    assert limits.small_blocks([ROW, [12, 600], MPI.DOUBLE])
    assert not limits.small_vector([ROW, [12, 600], MPI.DOUBLE])


@pytest.mark.parametrize("method", METHODS)
def test_all_or_nothing(method: str) -> None:
    """At first no message is small; where the library carries all, every one is."""
    assert not getattr(Limits(), method)(bytearray())
    everything = of((1 << 63) - 1)
    for message in (*KNOWN.values(), *UNKNOWN.values(), *WRONG.values(), Strange()):
        assert getattr(everything, method)(message)


def test_small_messages_are_counted() -> None:
    """Messages that are the MPI library's are counted, and no others."""
    limits = of(96)
    assert limits.nsmall() == 0
    for small in (True, False, True):
        nbytes = 10 if small else 1000
        assert limits.small_block(bytes(nbytes)) == small
    assert limits.nsmall() == 2


def test_held_back() -> None:
    """From some time on, a function may say that small messages are not the library's.

    It is asked for ever, so this test has a process of its own.
    """
    code = (
        "from mpimcast._small import Limits; limits = Limits(); limits.set(9, 9); "
        "assert limits.small_block(b'small'); "
        "[Limits.hold_back(each) for each in (lambda m: m == b'held', None, print)]; "
        "assert limits.small_block(b'small') and not limits.small_block(b'held'); "
        "assert not limits.small_block(b'not small'); "
        "limits.set(2**63 - 1, 2**63 - 1); assert not limits.small_blocks(b'held')"
    )
    assert not run([sys.executable, "-c", code], limit_s=60)
