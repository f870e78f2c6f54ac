# SPDX-License-Identifier: BSD-3-Clause
"""The bytes that ranks send, which depend on rank, operation and offset."""

from __future__ import annotations

from typing import Any

import numpy as np

# Random bytes. A block begins at one of _SHIFTS offsets in them, and repeats itself
# after _PERIOD_BYTES. _SHIFTS is prime.
_SHIFTS, _PERIOD_BYTES = 509, 1 << 20
_RANDOM = np.random.default_rng(1).integers(0, 256, _PERIOD_BYTES + _SHIFTS, np.uint8)


def pattern(rank: int, op: int, nbytes: int) -> np.ndarray[Any, Any]:
    """Return the block that a rank contributes to an operation."""
    begin = (rank * 61 + op * 17) % _SHIFTS
    times = -(-nbytes // _PERIOD_BYTES) or 1
    period = _RANDOM[begin : begin + min(nbytes, _PERIOD_BYTES)]
    return np.tile(period, times)[:nbytes]
