# SPDX-License-Identifier: BSD-3-Clause
"""The spread of repeated measurements, which tables and plots show."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import NamedTuple


class Spread(NamedTuple):
    """A median, with a low and a high value around it."""

    median: float
    low: float
    high: float


def spread(values: Sequence[float]) -> Spread:
    """Return the spread of some values: their median, least and greatest."""
    return Spread(statistics.median(values), min(values), max(values))
