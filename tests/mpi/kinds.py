# SPDX-License-Identifier: BSD-3-Clause
"""Kinds of memory, types and messages, and their pairwise combination."""

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
    """An object that has only DLPack."""

    def __init__(self, content: np.ndarray) -> None:
        self._content = content

    def __dlpack__(self, **options: object) -> object:
        """Return the capsule."""
        return self._content.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        """Return the device."""
        return self._content.__dlpack_device__()


class DeviceTensor(Tensor):
    """An object that has DLPack, and claims to lie on a device."""

    def __dlpack__(self, *, stream: int, **options: object) -> object:
        """Return the capsule, without waiting for the device."""
        assert stream == -1
        return super().__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        """Return CUDA's first device."""
        return 2, 0


class CudaArray:
    """An object that has only the CUDA array interface."""

    def __init__(self, content: np.ndarray) -> None:
        self._content = content
        self.__cuda_array_interface__ = {**content.__array_interface__, "version": 3}


# Types of which one item holds four doubles, each type in other places.
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


def extent_of(datatype: MPI.Datatype, count: int) -> int:
    """Return how many doubles `count` items span."""
    if count == 0:
        return 0
    _, extent = datatype.Get_extent()
    true_begin, true_extent = datatype.Get_true_extent()
    return -(-((count - 1) * extent + true_begin + true_extent) // 8)


# ---- messages of units ---------------------------------------------------------
#
# A unit is four doubles, whatever its items are.

UNIT_BYTES = 32
TYPES: dict[str, Callable[[], MPI.Datatype]] = {
    "double": MPI.DOUBLE.Dup,
    "byte": MPI.BYTE.Dup,
    "16 bits": MPI.INT16_T.Dup,
    **DERIVED,
}


class Kind:
    """A type, given by its name, and how many of its items make a unit."""

    def __init__(self, name: str) -> None:
        self.datatype = TYPES[name]().Commit()
        self.per_unit = UNIT_BYTES // self.datatype.Get_size()

    def __enter__(self) -> Self:
        """Return the kind itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Free the type."""
        self.datatype.Free()

    def doubles(self, nunits: int) -> int:
        """Return how many doubles a number of units spans."""
        return extent_of(self.datatype, nunits * self.per_unit)


def _ours(content: np.ndarray) -> np.ndarray:
    mine = mpimcast.empty(content.shape, content.dtype)
    mine[...] = content
    return mine


# By kind, a function that makes an object, and whether that copies the content.
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
    "mpimcast.empty": (_ours, True),
}


def _even(content: np.ndarray) -> np.ndarray:
    return content[: len(content) // 2 * 2]


class Owner:
    """An object of some kind that has memory."""

    def __init__(self, kind: str, content: np.ndarray) -> None:
        make, copies = OWNERS[kind]
        self.made = make(content)
        self._where = self.made if copies else content
        try:
            self.item_bytes = memoryview(self.made).itemsize
        except TypeError:
            self.item_bytes = content.itemsize

    def tobytes(self) -> bytes:
        """Return the whole content of the memory."""
        return bytes(memoryview(self._where).cast("B")) if len(self._where) else b""


# ---- combinations ---------------------------------------------------------------


def pairwise(factors: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Return rows of values in which each two values of two factors meet.

    The search is greedy and deterministic, so that all ranks find the same rows.
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
    return [(min(old, new), max(old, new)) for old in row.items()]


def check_mistake(comm: MPI.Intracomm, name: str, arguments: Sequence[Any]) -> None:
    """Check that a collective refuses what the MPI library's collective refuses."""
    with pytest.raises(Exception) as theirs:  # noqa: PT011 -- compared below
        getattr(MPI.Intracomm, name)(comm, *arguments)
    with pytest.raises(theirs.type) as ours:
        getattr(comm, name)(*arguments)
    if isinstance(theirs.value, MPI.Exception):
        # MPICH's texts add the function and the address, so only classes must agree.
        assert isinstance(ours.value, MPI.Exception)
        assert ours.value.Get_error_class() == theirs.value.Get_error_class()
    else:
        assert str(ours.value) == str(theirs.value)
