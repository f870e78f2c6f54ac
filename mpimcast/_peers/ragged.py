# SPDX-License-Identifier: BSD-3-Clause
"""Rows of different lengths, one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def begins(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return where each row begins, and where the last one ends."""
    return np.append(np.zeros(1, np.int64), np.cumsum(lengths))


def places(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return for each element its place in its row: 0, 1..., 0, 1..."""
    begin = begins(lengths)
    return np.arange(begin[-1]) - np.repeat(begin[:-1], lengths)
