# SPDX-License-Identifier: BSD-3-Clause
"""The bytes that ranks send, which depend on rank, operation and offset."""

from __future__ import annotations

from typing import Any

import numpy as np

_PATTERN = np.random.default_rng(1).integers(0, 256, (1 << 20) + 509, np.uint8)


def pattern(rank: int, op: int, nbytes: int) -> np.ndarray[Any, Any]:
    """Return the block that a rank contributes to an operation."""
    begin = (rank * 61 + op * 17) % 509
    times = -(-nbytes // (1 << 20)) or 1
    return np.tile(_PATTERN[begin : begin + min(nbytes, 1 << 20)], times)[:nbytes]
