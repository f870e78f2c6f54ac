# SPDX-License-Identifier: BSD-3-Clause
"""Waiting for what a test cannot be told of: it looks again and again."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

Seen = TypeVar("Seen")

_PAUSE_S = 0.02  # between two looks


def await_state(
    look: Callable[[], Seen],
    holds: Callable[[Seen], object] = bool,
    limit_s: float = 20,
) -> Seen:
    """Look until what is seen holds, and return it; fail if that takes too long."""
    deadline_s = time.monotonic() + limit_s
    while not holds(seen := look()):
        assert time.monotonic() < deadline_s, f"after {limit_s} s there is still {seen}"
        time.sleep(_PAUSE_S)
    return seen
