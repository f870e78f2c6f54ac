# SPDX-License-Identifier: BSD-3-Clause
"""The hash by which switches and placements choose: the same on every machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

# The multipliers of splitmix64, and the golden ratio by which numbers are spread.
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)

_UINT64_MAX = 2**64 - 1


def mix64(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the finaliser of splitmix64 of each value.

    Parameters
    ----------
    values
        Of shape (n,).
    """
    values = (values ^ (values >> np.uint64(30))) * _FIRST
    values = (values ^ (values >> np.uint64(27))) * _SECOND
    return values ^ (values >> np.uint64(31))


def mix(value: int) -> int:
    """Return the finaliser of splitmix64 of one value, taken modulo 2^64."""
    return int(mix64(np.array([value & _UINT64_MAX], np.uint64))[0])


def flow_hashes(
    senders: NDArray[np.uint32],
    receivers: NDArray[np.uint32],
    switches: NDArray[np.uint32],
    seed: int,
) -> NDArray[np.uint64]:
    """Return the hash by which a switch chooses among equal links, for each flow.

    The simulator computes the same in C.

    Parameters
    ----------
    senders, receivers
        The vertices at the ends of each flow.
    switches
        The vertex of the switch where each flow is.
    seed
        What distinguishes one network's hashes from another's.
    """
    flows = senders.astype(np.uint64) << np.uint64(32) | receivers.astype(np.uint64)
    return mix64(np.uint64(seed) ^ flows ^ switches.astype(np.uint64) * _GOLDEN)
