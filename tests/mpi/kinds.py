# SPDX-License-Identifier: BSD-3-Clause
"""Kinds of buffers and MPI types for the tests to pass, and how to combine them."""

from __future__ import annotations

import array
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from mpi4py import MPI
from typing_extensions import Self

import mpimcast


class Tensor:
    """An object whose only interface to its memory is DLPack."""

    def __init__(self, content: np.ndarray) -> None:
        self._content = content

    def __dlpack__(self, **options: object) -> object:
        """Return the capsule that describes the memory."""
        return self._content.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        """Return the device type and number of the memory, those of a CPU."""
        return self._content.__dlpack_device__()


class DeviceTensor(Tensor):
    """A Tensor that claims to lie on a CUDA device, though it lies in main memory."""

    def __dlpack__(self, *, stream: int, **options: object) -> object:
        """Return the capsule; assert that the caller asks not to synchronise."""
        assert stream == -1  # DLPack's word for "do not wait for any stream"
        return super().__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        """Return DLPack's number for CUDA, and the first device."""
        return 2, 0


class CudaArray:
    """An object whose only interface to its memory is the CUDA array interface."""

    def __init__(self, content: np.ndarray) -> None:
        self._content = content
        self.__cuda_array_interface__ = {**content.__array_interface__, "version": 3}


# Derived types by name. An item of any of them holds four doubles; the types differ in
# where these lie.
DERIVED: dict[str, Callable[[], MPI.Datatype]] = {
    "contiguous": lambda: MPI.DOUBLE.Create_contiguous(4),
    "vector": lambda: MPI.DOUBLE.Create_vector(2, 2, 3),
    "every other": lambda: MPI.DOUBLE.Create_vector(4, 1, 2),
    "indexed": lambda: MPI.DOUBLE.Create_indexed([1, 2, 1], [0, 2, 5]),
    "out of order": lambda: MPI.DOUBLE.Create_indexed_block(1, [3, 1, 0, 2]),
    "late begin": lambda: MPI.DOUBLE.Create_indexed_block(2, [1, 4]),
    "struct": lambda: MPI.Datatype.Create_struct(
        [8, 2, 8], [0, 16, 40], [MPI.BYTE, MPI.DOUBLE, MPI.CHAR]
    ),
    "subarray": lambda: MPI.DOUBLE.Create_subarray([3, 4], [2, 2], [1, 1]),
    "resized up": lambda: MPI.DOUBLE.Create_contiguous(4).Create_resized(0, 56),
    "interleaved": lambda: MPI.DOUBLE.Create_vector(4, 1, 20).Create_resized(0, 8),
}


def spanned_doubles(datatype: MPI.Datatype, count: int) -> int:
    """Return how many doubles of memory `count` items span, gaps included."""
    if count == 0:
        return 0
    _, extent = datatype.Get_extent()
    true_begin, true_extent = datatype.Get_true_extent()
    return -(-((count - 1) * extent + true_begin + true_extent) // 8)


# ---- messages of units ---------------------------------------------------------
#
# Ranks may pass different types to one operation if the bytes agree. So tests count in
# units: a unit is 32 bytes of data, be that one item of a derived type, four doubles or
# 32 single bytes.

UNIT_BYTES = 32
TYPES: dict[str, Callable[[], MPI.Datatype]] = {
    "double": MPI.DOUBLE.Dup,
    "byte": MPI.BYTE.Dup,
    "16 bits": MPI.INT16_T.Dup,
    **DERIVED,
}


class Kind:
    """A type of TYPES, committed, and how many of its items make a unit."""

    def __init__(self, name: str) -> None:
        self.datatype = TYPES[name]().Commit()
        self.items_per_unit = UNIT_BYTES // self.datatype.Get_size()

    def __enter__(self) -> Self:
        """Return the kind itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Free the type."""
        self.datatype.Free()

    def spanned_doubles(self, nunits: int) -> int:
        """Return how many doubles of memory a number of units spans, gaps included."""
        return spanned_doubles(self.datatype, nunits * self.items_per_unit)


def _in_registered_memory(content: np.ndarray) -> np.ndarray:
    copy = mpimcast.empty(content.shape, content.dtype)
    copy[...] = content
    return copy


# By the name of a kind of buffer: a function that makes one from an array, and whether
# the buffer has a copy of the array's content; if not, both have the same memory.
OWNERS: dict[str, tuple[Callable[[np.ndarray], Any], bool]] = {
    "numpy": (lambda content: content, False),
    "complex": (lambda content: _even(content).view(complex), False),
    "int16": (lambda content: content.view(np.int16), False),
    "matrix": (lambda content: content.reshape(-1, 1), False),
    "memoryview": (memoryview, False),
    "MPI.buffer": (MPI.buffer.frombuffer, False),
    "DLPack": (Tensor, False),
    "DLPack, device": (DeviceTensor, False),
    "CUDA array": (CudaArray, False),
    "bytearray": (lambda content: bytearray(content.tobytes()), True),
    "array.array": (lambda content: array.array("d", content.tobytes()), True),
    "mpimcast.empty": (_in_registered_memory, True),
}


def _even(content: np.ndarray) -> np.ndarray:
    """Return the content without the last item if their number is odd."""
    return content[: len(content) // 2 * 2]


class Owner:
    """A buffer of some kind, and the memory that it gives access to.

    Parameters
    ----------
    kind
        A key of OWNERS.
    content
        What the memory holds.

    Attributes
    ----------
    buffer
        The object to pass to a collective.
    item_bytes : int
        The size of the buffer's items, or of `content`'s if the buffer does not tell.
    """

    def __init__(self, kind: str, content: np.ndarray) -> None:
        make_buffer, copies = OWNERS[kind]
        self.buffer = make_buffer(content)
        self._memory = self.buffer if copies else content
        try:
            self.item_bytes = memoryview(self.buffer).itemsize
        except TypeError:
            self.item_bytes = content.itemsize

    def tobytes(self) -> bytes:
        """Return the whole content of the memory."""
        # A memoryview of no items cannot be cast.
        return bytes(memoryview(self._memory).cast("B")) if len(self._memory) else b""


# ---- combinations ---------------------------------------------------------------


def pairwise(factors: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Return combinations of values, one value of each factor in each combination.

    Any two values of two different factors are together in at least one combination,
    which takes far fewer combinations than to try all. The search is greedy and
    deterministic, so that all ranks find the same ones.
    """
    names = list(factors)
    open_pairs = {
        pair
        for one, two in itertools.combinations(range(len(names)), 2)
        for pair in itertools.product(
            [(one, index) for index in range(len(factors[names[one]]))],
            [(two, index) for index in range(len(factors[names[two]]))],
        )
    }
    rows = []
    while open_pairs:
        row = dict(min(open_pairs))
        for factor in range(len(names)):
            if factor not in row:
                row[factor] = max(
                    range(len(factors[names[factor]])),
                    key=lambda index, at=(factor,): sum(
                        pair in open_pairs for pair in _pairs(row, (*at, index))
                    ),
                )
        open_pairs.difference_update(itertools.combinations(sorted(row.items()), 2))
        rows.append({names[at]: factors[names[at]][index] for at, index in row.items()})
    return rows


def _pairs(
    row: Mapping[int, int], new: tuple[int, int]
) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Return the pairs that a factor's value makes with those already in the row."""
    return [(min(old, new), max(old, new)) for old in row.items()]


def check_mistake(comm: MPI.Intracomm, name: str, arguments: Sequence[Any]) -> None:
    """Check that the collective `name` raises what the MPI library's own raises."""
    with pytest.raises(Exception) as theirs:  # noqa: PT011 -- compared below
        getattr(MPI.Intracomm, name)(comm, *arguments)
    with pytest.raises(theirs.type) as ours:
        getattr(comm, name)(*arguments)
    if isinstance(theirs.value, MPI.Exception):
        # MPICH's texts add the function and an address, so only the classes must agree.
        assert isinstance(ours.value, MPI.Exception)
        assert ours.value.Get_error_class() == theirs.value.Get_error_class()
    else:
        assert str(ours.value) == str(theirs.value)
