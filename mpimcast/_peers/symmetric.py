# SPDX-License-Identifier: BSD-3-Clause
"""Schedules that look the same from every rank."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mpimcast._peers.contents import Contents, blocks
from mpimcast._peers.schedule import joined, scheduled

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mpimcast._peers.schedule import Schedule


@dataclass(frozen=True)
class Step:
    """One step, in which every rank sends the same; numbers are relative to the rank.

    Parameters
    ----------
    ahead
        The receiver.
    first, count, stride
        The blocks, as of `Contents`.
    after
        The steps whose messages the rank must have received.
    """

    ahead: int
    first: int
    count: int
    stride: int
    after: Sequence[int]


def symmetric(nranks: int, nbytes: int, steps: Sequence[Step]) -> Schedule:
    """Return the schedule in which each rank sends one message a step.

    Parameters
    ----------
    nranks
        The number of ranks.
    nbytes
        The bytes of a block.
    steps
        The steps, in the order in which their messages are numbered.
    """
    ranks = np.arange(nranks)
    contents = Contents(
        blocks(nranks, nbytes),
        joined((ranks + step.first) % nranks for step in steps),
        np.repeat(np.array([step.count for step in steps], np.int64), nranks),
        np.repeat(np.array([step.stride for step in steps], np.int64), nranks),
    )
    pairs = [(early, late) for late, step in enumerate(steps) for early in step.after]
    before = (
        early * nranks + (ranks - steps[early].ahead) % nranks for early, _ in pairs
    )
    return scheduled(
        np.tile(ranks, len(steps)),
        joined((ranks + step.ahead) % nranks for step in steps),
        contents,
        (joined(before), joined(late * nranks + ranks for _, late in pairs)),
    )
