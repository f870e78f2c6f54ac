# SPDX-License-Identifier: BSD-3-Clause
"""Allgather by neighbour exchange (Chen et al. 2005)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mpimcast._peers.contents import Contents, blocks
from mpimcast._peers.schedule import joined, scheduled

if TYPE_CHECKING:
    from mpimcast._peers.schedule import Schedule


def neighbour_exchange(nranks: int, nbytes: int) -> Schedule:
    """Return the exchange with the left and the right neighbour in turn.

    The first step makes pairs of ranks with the blocks of both; in each further one
    neighbours pass each other the pair of blocks that they got last.

    Parameters
    ----------
    nranks
        The number of ranks, which is even.
    nbytes
        The bytes of a block.

    Raises
    ------
    ValueError
        If the number of ranks is odd, or there are no ranks or no bytes.
    """
    sizes = blocks(nranks, nbytes)
    if nranks % 2:
        raise ValueError(f"neighbours cannot exchange in pairs if {nranks} ranks do")
    nsteps = nranks // 2
    ranks = np.arange(nranks)
    receivers, firsts, before = [ranks ^ 1], [ranks], []
    held = ranks // 2 * 2
    for step in range(1, nsteps):
        before.append((step - 1) * nranks + receivers[-1])
        ahead = np.where((ranks + step) % 2, -1, 1)
        receivers.append((ranks + ahead) % nranks)
        firsts.append(held)
        held = held[receivers[-1]]
    count = np.full(nsteps * nranks, 2)
    count[:nranks] = 1
    contents = Contents(sizes, joined(firsts), count, np.ones_like(count))
    after = np.arange(nranks, nsteps * nranks)
    senders = np.tile(ranks, nsteps)
    return scheduled(senders, joined(receivers), contents, (joined(before), after))
