# SPDX-License-Identifier: BSD-3-Clause
"""Decides when a wait is logged."""

from __future__ import annotations

import time


class Patience:
    """A wait that is logged after WARN_AFTER, then each time its length has doubled.

    Parameters
    ----------
    warn_after_s
        The setting WARN_AFTER; with infinity nothing is logged.
    """

    def __init__(self, warn_after_s: float) -> None:
        self._begin_s = time.monotonic()
        self._next_s = warn_after_s

    def waited_s(self) -> float:
        """Return the seconds waited by now."""
        return time.monotonic() - self._begin_s

    def exhausted(self) -> bool:
        """Return whether to log now; if so, not again before the wait has doubled."""
        waited_s = self.waited_s()
        if waited_s < self._next_s:
            return False
        while self._next_s <= waited_s:
            self._next_s *= 2
        return True
