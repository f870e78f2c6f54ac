# SPDX-License-Identifier: BSD-3-Clause
"""`mpimcast.empty`, which makes arrays in the library's memory."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

import mpimcast
from mpimcast._native.engine import engine


@pytest.mark.parametrize("shape", [7, (3, 5), (2, 0, 4), ()])
@pytest.mark.parametrize("dtype", [np.uint8, np.float64, "i4", [("a", "u1", 3)]])
def test_like_numpy(shape: Any, dtype: Any) -> None:
    """An array is like one from ``numpy.empty``, and can be written to."""
    made, model = mpimcast.empty(shape, dtype), np.empty(shape, dtype)
    assert (made.shape, made.dtype) == (model.shape, model.dtype)
    assert made.flags.c_contiguous
    assert made.flags.writeable
    made.view(np.uint8).fill(1) if made.ndim else made.fill(np.ones((), dtype))


def test_objects() -> None:
    """Arrays of Python objects are refused, since other processes read the memory."""
    with pytest.raises(TypeError, match="cannot hold objects"):
        mpimcast.empty(3, object)


def test_lifetime() -> None:
    """The memory and its engine exist for as long as any view of the memory."""
    before = engine._nusers  # noqa: SLF001
    view = mpimcast.empty((4, 4))[1:]
    assert engine._nusers == before + 1  # noqa: SLF001
    view[:] = 3
    assert (view == 3).all()
    del view
    gc.collect()
    assert engine._nusers == before  # noqa: SLF001
