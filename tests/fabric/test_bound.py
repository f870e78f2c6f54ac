# SPDX-License-Identifier: BSD-3-Clause
"""The least time of a collective is that of the busiest cut at a rank or a node."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mpimcast._fabric.bound import bound_ns
from mpimcast._fabric.clos import clos2, single
from mpimcast._fabric.link import Link
from mpimcast._fabric.nodes import nodes
from mpimcast._fabric.rails import rails

LINK = Link("", mbits=8000)  # a byte takes a nanosecond


def blocks(nranks: int, nbytes: int) -> np.ndarray:
    """Return what each rank of an Allgather sends."""
    return np.full(nranks, nbytes, np.uint64)


@given(st.integers(1, 30), st.integers(0, 10**9), st.integers(1, 8_000_000))
def test_allgather(nranks: int, nbytes: int, mbits: int) -> None:
    """On hosts of their own it is N (P - 1) / B."""
    fabric = single(nranks, Link("", mbits=mbits))
    exact = nbytes * (nranks - 1) * 8000 / mbits
    assert abs(bound_ns(fabric, blocks(nranks, nbytes)) - exact) <= 1 + exact * 1e-9


def test_broadcast() -> None:
    """The root alone sends, and receives nothing."""
    fabric = clos2(4, link=LINK)
    sent = np.zeros(8, np.uint64)
    sent[3] = 1000
    assert bound_ns(fabric, sent) == 1000
    assert bound_ns(fabric, sent[3:4]) == 0


def test_nodes_share_an_adapter() -> None:
    """What comes from other nodes passes the adapter once, and then ranks' links."""
    fabric = nodes(single(3, LINK), 4)
    assert bound_ns(fabric, blocks(12, 1000)) == 8 * 1000
    assert bound_ns(fabric, blocks(4, 800_000)) == 3 * 8000
    slow = nodes(single(3, LINK), 4, replace(LINK, mbits=4000))
    assert bound_ns(slow, blocks(12, 1000)) == 2 * 11 * 1000


def test_rails_add_up() -> None:
    """A node with a device for each rail receives over all of them."""
    fabric = rails(2, 3, 2, link=LINK)
    assert bound_ns(fabric, blocks(12, 1000)) == 10 * 1000 // 2


def test_sums() -> None:
    """A Reduce-Scatter brings each rank a block more."""
    assert bound_ns(single(5, LINK), blocks(5, 1000), 1000) == 5 * 1000
    fabric = nodes(single(3, LINK), 4)
    assert bound_ns(fabric, blocks(12, 1000), 1000) == (8 + 4) * 1000
