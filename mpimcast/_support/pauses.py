# SPDX-License-Identifier: BSD-3-Clause
"""How long to pause between two looks at what nobody reports."""

from __future__ import annotations

# A pause lasts this share of the time waited, so that long waits cost no core.
_SHARE = 1 / 16


def pause_s(waited_s: float, shortest_s: float, longest_s: float) -> float:
    """Return the seconds of the next pause, within bounds, after some time of waiting.

    Examples
    --------
    >>> pause_s(0.0, 1e-5, 1e-3), pause_s(0.008, 1e-5, 1e-3), pause_s(9.0, 1e-5, 1e-3)
    (1e-05, 0.0005, 0.001)
    """
    return min(max(shortest_s, _SHARE * waited_s), longest_s)
