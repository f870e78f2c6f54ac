# SPDX-License-Identifier: BSD-3-Clause
"""Each name of the catalogue stands for a schedule that does the whole collective."""

from __future__ import annotations

import numpy as np
import pytest
from replay import gather, reduce

from mpimcast._fabric.clos import clos2
from mpimcast._fabric.routes import Routes
from mpimcast._fabric.subnet_manager import SubnetManager
from mpimcast._peers.catalogue import ALLGATHERS, BROADCASTS, REDUCE_SCATTERS

NRANKS, NBYTES = 10, 140_000


@pytest.mark.parametrize("name", ALLGATHERS)
def test_allgathers(name: str) -> None:
    """Each rank gets the blocks of all."""
    schedule = ALLGATHERS[name]([rank // 4 for rank in range(NRANKS)], NBYTES)
    assert schedule.contents.sizes.sum() == NRANKS * NBYTES
    has = np.eye(NRANKS, dtype=bool)
    assert gather(schedule, has).all()


@pytest.mark.parametrize("name", BROADCASTS)
@pytest.mark.parametrize("root", [0, 7])
def test_broadcasts(name: str, root: int) -> None:
    """Each rank gets the root's block."""
    schedule = BROADCASTS[name](NRANKS, NBYTES, root)
    sizes = schedule.contents.sizes
    assert sizes.sum() == NBYTES
    has = np.zeros((NRANKS, len(sizes)), dtype=bool)
    has[root] = True
    # Ranks that have got parts of the block at first get them once more.
    assert gather(schedule, has, needless=name == "scatter-allgather").all()


@pytest.mark.parametrize("name", REDUCE_SCATTERS)
def test_reduce_scatters(name: str) -> None:
    """Each rank gets the sum of all ranks' blocks for it."""
    fabric = clos2(8, NRANKS)
    trees = SubnetManager(fabric, Routes(fabric)).trees(range(NRANKS))
    schedule = REDUCE_SCATTERS[name](trees, NBYTES)
    sizes = schedule.contents.sizes
    assert sizes.sum() == NRANKS * NBYTES
    owners = np.repeat(np.arange(NRANKS), len(sizes) // NRANKS).tolist()
    reduce(schedule, owners, list(range(NRANKS)), lambda waiting: waiting.pop())
