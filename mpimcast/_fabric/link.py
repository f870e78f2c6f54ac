# SPDX-License-Identifier: BSD-3-Clause
"""One directed link: its class, rate, latency, queue and loss."""

from __future__ import annotations

from dataclasses import dataclass

_UINT32_MAX = 2**32 - 1
_UINT64_MAX = 2**64 - 1
_LOSS_MAX_PPB = 10**9
_LOSS_PERIOD_MAX = 10**6  # MMC_GILBERT_PERIOD_MAX
_MBITS_MAX = 8_000_000  # MMC_FABRIC_MBITS_MAX


@dataclass(frozen=True)
class Link:
    """The properties of a directed link, apart from its two ends.

    The defaults are assumptions about a cluster of today: 100 Gbit/s; a switch of about
    200 ns and 20 m of fibre of 5 ns each; and a port's share of 32 MiB of memory that
    32 ports share.

    Parameters
    ----------
    name
        The class of the link, such as "leaf up". Traffic is reported by class.
    mbits
        Its rate, in Mbit/s.
    latency_ns
        The time from the end of sending to arrival.
    jitter_ns
        The longest random delay in addition.
    queue_bytes
        How much may wait at its beginning; what is more is dropped.
    loss_ppb
        How many datagrams of 10^9 are lost at random.
    loss_period
        How many consecutive ones are lost, on average; 1: losses are independent. With
        N, at most N of N + 1 datagrams are lost.
    burst_bytes, burst_mbits
        A token bucket: so many bytes may leave at this faster rate, if the link has
        been idle for long enough. 0 for none.
    cost
        The weight in the choice of the shortest routes.

    Raises
    ------
    ValueError
        If a number is out of its range.
    """

    name: str
    mbits: int = 100_000
    latency_ns: int = 300
    jitter_ns: int = 0
    queue_bytes: int = 1 << 20
    loss_ppb: int = 0
    loss_period: int = 1
    burst_bytes: int = 0
    burst_mbits: int = 0
    cost: int = 1

    def __post_init__(self) -> None:
        """Check the ranges, which are those of the simulator's arrays."""
        # Between two periods at least one datagram passes.
        lost, passed = self.loss_period, int(self.loss_period > 1)
        ranges = {
            "mbits": (1, _MBITS_MAX),
            "latency_ns": (0, _UINT32_MAX),
            "jitter_ns": (0, _UINT32_MAX),
            "queue_bytes": (1, _UINT64_MAX),
            "loss_period": (1, _LOSS_PERIOD_MAX),
            "loss_ppb": (0, _LOSS_MAX_PPB * lost // max(lost + passed, 1)),
            "burst_bytes": (0, _UINT64_MAX),
            "burst_mbits": (0, _MBITS_MAX),
            "cost": (1, 10**4),
        }
        for field, (low, high) in ranges.items():
            value = getattr(self, field)
            if not low <= value <= high:
                raise ValueError(
                    f"{field} of link {self.name!r} is {value}, "
                    f"not from {low} to {high}"
                )
        bursts = self.burst_bytes > 0 and self.burst_mbits > self.mbits
        if not bursts and (self.burst_bytes or self.burst_mbits):
            raise ValueError(
                f"link {self.name!r} of {self.mbits} Mbit/s has a burst of "
                f"{self.burst_bytes} bytes at {self.burst_mbits} Mbit/s: "
                "give both, at a faster rate, or neither"
            )
