# SPDX-License-Identifier: BSD-3-Clause
"""When a wait deserves a line in the log."""

from __future__ import annotations

import time


class Patience:
    """A wait that is logged after WARN_AFTER, then each time it has doubled.

    Parameters
    ----------
    warn_after_s
        The setting; infinity never logs.
    """

    def __init__(self, warn_after_s: float) -> None:
        self._begin_s = time.monotonic()
        self._next_s = warn_after_s

    def waited_s(self) -> float:
        """Return for how long it has been."""
        return time.monotonic() - self._begin_s

    def exhausted(self) -> bool:
        """Return whether to log now; each time it says so, it says so later again."""
        waited_s = self.waited_s()
        if waited_s < self._next_s:
            return False
        while self._next_s <= waited_s:
            self._next_s *= 2
        return True
