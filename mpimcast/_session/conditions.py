# SPDX-License-Identifier: BSD-3-Clause
"""The conditions of a network, as this rank has met them since it looked last."""

from __future__ import annotations

from bisect import bisect
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

# These bounds divide the shares of lost chunks into classes. Two shares of one class
# are the same condition. The senders' window is no condition of its own, since it
# shrinks when chunks are lost.
_LOSS_SHARES = (0.001, 0.01, 0.1)


class Conditions:
    """Tells apart how much a network loses, and whether it delivers multicast at all.

    Parameters
    ----------
    counters
        Returns the counters of stats().
    """

    def __init__(self, counters: Callable[[], Mapping[str, int]]) -> None:
        self._counters = counters
        self._before: Mapping[str, int] = {}

    def number(self) -> int:
        """Return a number for the conditions since the last call."""
        now, before = self._counters(), self._before
        self._before = now
        spent = {name: value - before.get(name, 0) for name, value in now.items()}
        if spent["unicast_epochs"] > 0:
            return len(_LOSS_SHARES) + 1
        lost = spent["rx_lost_chunks"]
        return bisect(
            _LOSS_SHARES, lost / max(1, lost + spent["rx_multicast_datagrams"])
        )
