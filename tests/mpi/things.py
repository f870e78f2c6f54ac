# SPDX-License-Identifier: BSD-3-Clause
"""Python objects of many kinds, and how to compare them with what has arrived."""

from __future__ import annotations

import array
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np


class Point:
    """An object that is pickled by its attributes."""

    def __init__(self, *values: Any) -> None:
        self.values = values


def frozen(content: np.ndarray) -> np.ndarray:
    """Make an array read-only, and return it."""
    content.flags.writeable = False
    return content


# By name: what makes an object, given a number that it depends on, such as a rank.
OBJECTS: dict[str, Callable[[int], Any]] = {
    "None": lambda _: None,
    "number": lambda rank: rank,
    "text": lambda rank: "x" * 700 * rank,
    "nested": lambda rank: {"a": [rank, (1.5, None)], 3: {b"bytes", rank}},
    "array": lambda rank: np.arange(100.0) + rank,
    "frozen array": lambda rank: frozen(np.arange(100) * rank),
    "Fortran array": lambda rank: np.asfortranarray(np.full((20, 10), rank)),
    "strided array": lambda rank: np.arange(400)[:: rank + 2],
    "empty array": lambda _: np.zeros((0, 3)),
    "array of objects": lambda rank: np.array([rank, "a", None], object),
    "records": lambda rank: np.array([(rank, 2.5)] * 30, "i4,f8"),
    "scalar": np.float32,
    "many arrays": lambda rank: [np.full(20 + each, rank) for each in range(3 * rank)],
    "the same twice": lambda rank: [np.full(50, rank)] * 2,
    "bytearray": lambda rank: bytearray([rank]) * 500,
    "bytes": lambda rank: bytes([rank]) * 500,
    "array.array": lambda rank: array.array("d", [rank] * 50),
    "PickleBuffer": lambda rank: pickle.PickleBuffer(bytearray([rank]) * 300),
    "frozen PickleBuffer": lambda rank: pickle.PickleBuffer(bytes([rank]) * 300),
    "own class": lambda rank: Point(rank, np.arange(1000), frozen(np.zeros(40))),
    "tuple": lambda rank: (rank, 2.5, "x", None, True, b"y", 1j),
    "many items": lambda rank: dict.fromkeys(range(rank + 12), rank),
    "arrays in a list": lambda rank: [1, np.full(3, rank)],
    "large": lambda rank: [np.arange(30_000) + rank, bytes(10_000), np.zeros(9_000)],
}


def check_same(one: Any, two: Any) -> None:
    """Check that two objects are equal in type, value, layout and writability.

    Parts that are one object on one side must be one object on the other side, too.
    """
    assert type(one) is type(two)
    if isinstance(one, np.ndarray):
        assert (one.dtype, one.shape) == (two.dtype, two.shape)
        assert one.flags.writeable == two.flags.writeable
        assert one.flags.f_contiguous == two.flags.f_contiguous
        assert np.array_equal(one, two)
    elif isinstance(one, list | tuple):
        assert len(one) == len(two)
        for each, other in zip(one, two, strict=True):
            check_same(each, other)
        assert len({id(each) for each in one}) == len({id(each) for each in two})
    elif isinstance(one, Point):
        check_same(one.values, two.values)
    else:
        assert one == two
