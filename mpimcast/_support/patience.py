# SPDX-License-Identifier: BSD-3-Clause
"""Decides when a long wait is to be logged."""

from __future__ import annotations

import time


class Patience:
    """A wait that begins now, and tells when to log a warning about its length.

    The first warning is due after WARN_AFTER, and another one each time the length of
    the wait has doubled.

    Parameters
    ----------
    warn_after_s
        The value of the setting WARN_AFTER; with infinity no warning is ever due.
    """

    def __init__(self, warn_after_s: float) -> None:
        self._begin_s = time.monotonic()
        self._next_s = warn_after_s

    def waited_s(self) -> float:
        """Return for how many seconds this has waited by now."""
        return time.monotonic() - self._begin_s

    def take_warning(self) -> bool:
        """Return whether a warning is due. The caller logs it; it is not due again."""
        waited_s = self.waited_s()
        if waited_s < self._next_s:
            return False
        while self._next_s <= waited_s:
            self._next_s *= 2
        return True
