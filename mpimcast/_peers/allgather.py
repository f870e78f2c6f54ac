# SPDX-License-Identifier: BSD-3-Clause
"""Allgathers in which every rank does the same: ring, linear, Bruck, PAT.

Each takes the number of ranks and the bytes of a block, and raises ValueError if either
is not positive.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpimcast._peers.symmetric import Step, symmetric

if TYPE_CHECKING:
    from mpimcast._peers.schedule import Schedule


def ring(nranks: int, nbytes: int) -> Schedule:
    """Return the ring: each rank passes to the next what it got from the one before."""
    steps = [Step(1, -t, 1, 1, [t - 1] if t else []) for t in range(nranks - 1)]
    return symmetric(nranks, nbytes, steps)


def linear(nranks: int, nbytes: int) -> Schedule:
    """Return the exchange in which each rank sends its block to every other itself.

    Each rank begins with its right neighbour, so that no receiver is everyone's first.
    """
    steps = [Step(ahead, 0, 1, 1, []) for ahead in range(1, nranks)]
    return symmetric(nranks, nbytes, steps)


def bruck(nranks: int, nbytes: int) -> Schedule:
    """Return the algorithm of Bruck et al. 1997.

    In each step a rank sends all that it has, twice as far back as in the step before;
    in the last one only what the receiver lacks.
    """
    steps: list[Step] = []
    distance = 1
    while distance < nranks:
        count = min(distance, nranks - distance)
        # Step i has brought the blocks from 2^i on.
        after = range((count - 1).bit_length())
        steps.append(Step(-distance, 0, count, 1, after))
        distance *= 2
    return symmetric(nranks, nbytes, steps)


def pat(nranks: int, nbytes: int, aggregated: int | None = None) -> Schedule:
    """Return parallel aggregated trees, as NCCL has them (Jeaugey 2025).

    Each block spreads over a binomial tree of its own, the farthest ranks first, so
    that the many blocks of the last step go to the nearest rank. All trees take the
    same step at the same time, and their blocks go together.

    Parameters
    ----------
    nranks, nbytes
        The number of ranks, and the bytes of a block.
    aggregated
        How many blocks go together at most, as buffers are small; None for any number.
        More of them go in several messages.

    Raises
    ------
    ValueError
        If a number is not positive.
    """
    if aggregated is not None and aggregated < 1:
        raise ValueError(f"a message cannot carry {aggregated} blocks")
    most = aggregated or nranks
    steps: list[Step] = []
    brought: dict[
        int, int
    ] = {}  # by which step the block of so many ranks before comes
    distance = 1 << max(0, nranks - 1).bit_length()
    while distance > 1:
        stride, distance = distance, distance // 2
        held = range(0, nranks - distance, stride)
        for low in range(0, len(held), most):
            sent = held[low : low + most]
            after = sorted({brought[back] for back in sent if back})
            brought.update({back + distance: len(steps) for back in sent})
            steps.append(Step(distance, -sent[0], len(sent), -stride, after))
    return symmetric(nranks, nbytes, steps)
