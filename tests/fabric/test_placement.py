# SPDX-License-Identifier: BSD-3-Clause
"""Placements use each host once, and keep nodes together."""

from __future__ import annotations

from collections import Counter

import pytest
from fabrics import fabrics
from hypothesis import given, settings

from mpimcast._fabric import placement
from mpimcast._fabric.clos import clos2, paper
from mpimcast._fabric.fabric import Fabric
from mpimcast._fabric.nodes import nodes


@settings(deadline=None)
@given(fabrics())
def test_each_host_once(fabric: Fabric) -> None:
    """The hosts of a placement are the fabric's."""
    expected = sorted(fabric.switches.tolist())
    for placed in (
        placement.packed(fabric),
        placement.shuffled(fabric, 1),
        placement.interleaved(fabric),
    ):
        assert sorted(placed.switches.tolist()) == expected


def test_packed() -> None:
    """Ranks fill a rack before they begin another."""
    mixed = placement.shuffled(paper(), 3)
    assert placement.packed(mixed).racks.tolist() == paper().racks.tolist()


def test_interleaved() -> None:
    """188 ranks on 12 leaves are 15 or 16 on each."""
    placed = placement.interleaved(paper(216)).racks.tolist()
    assert placed[:24] == [*range(12), *range(12)]
    assert set(Counter(placed[:188]).values()) == {15, 16}


def test_shuffled() -> None:
    """A seed gives one order, and others give others."""
    first, again, other = (
        placement.shuffled(paper(), seed).racks.tolist() for seed in (1, 1, 2)
    )
    assert first == again
    assert first != other
    assert first != sorted(first)


@pytest.mark.parametrize("place", [placement.interleaved, placement.packed])
def test_nodes_stay_together(place: object) -> None:
    """The ranks of a node follow each other in every placement."""
    assert callable(place)
    fabric = nodes(clos2(4), 3)
    for placed in (place(fabric), placement.shuffled(fabric, 5)):
        switches = placed.switches.reshape(-1, 3)
        assert (switches == switches[:, :1]).all()
        assert len(set(switches[:, 0].tolist())) == len(switches)
