# SPDX-License-Identifier: BSD-3-Clause
"""Which devices become rails, who leads nodes on them, and what is said of it."""

from __future__ import annotations

from typing import cast

import pytest

from mpimcast._native.node import Node
from mpimcast._session.nodes import layout_of, led
from mpimcast._session.rails import Told, common, why_fewer
from mpimcast._session.sharing import Shared


def told(names: str, *, direct: str = "") -> list[Told]:
    """Return what a rank tells of devices, which have letters for names.

    A dot is a device that it cannot use. Those in `direct` need no router.
    """
    return [
        Told(name.strip("."), f"address of {name}", name in direct, near=False)
        for name in names
    ]


@pytest.mark.parametrize(
    ("names", "numbers"),
    [
        (["ab", "ab"], [0, 1]),
        (["ab", "ba", "cd"], [0, 1]),
        (["ab", "a"], [0]),
        (["ab", ""], []),
        (["abc", "a.c"], [0, 2]),  # by the second, one rank reaches nobody
        (["abc", "aac"], [0, 2]),  # a rank has one device towards both
        (["aab", "bab"], [0]),  # the best pair leaves no other
    ],
)
def test_common(names: list[str], numbers: list[int]) -> None:
    """A rail has a device of each rank, and no device is on two rails."""
    assert common([told(each) for each in names]) == numbers


def test_devices_without_a_router_come_first() -> None:
    """Where a device needs a router on some rank, others are preferred."""
    devices = [told("abc", direct="bc"), told("abc", direct="abc")]
    assert common(devices) == [1, 2, 0]


def test_leaders() -> None:
    """A leader is near its device, where that is possible, and leads on one rail."""
    layout = layout_of("aaabbb", frozenset())
    nobody, everybody = [False] * 6, [True] * 6
    assert led(layout, [nobody]).rails == ((0, 3),)
    assert led(layout, [everybody] * 3).rails == ((0, 3), (1, 4), (2, 5))
    near = [[rank in (1, 5) for rank in range(6)]] * 2
    layout = led(layout, near)
    assert layout.rails == ((1, 5), (0, 3))
    assert layout.leaders(4) == [5, 3]
    assert layout.rail(3) == (0, 3)
    assert layout.rail(2) == ()
    assert layout.nnodes == 2


@pytest.mark.parametrize(
    ("wanted", "hosts", "names", "why"),
    [
        (2, "aabb", ["xy"] * 4, ""),
        (2, "aabbb", ["xyz"] * 5, ""),
        (2, "aab", ["xy"] * 3, "ranks on each node, and rank 2 is alone on its node"),
        (3, "aaabb", ["xyz"] * 5, "ranks on each node, and rank 3 is on a node of 2"),
        (
            2,
            "aabb",
            ["xy", "xy", "y", "y"],
            "network devices on each node, and rank 2 has only y",
        ),
        (
            3,
            "aaabbb",
            ["xyz"] * 5 + [".zx"],
            "network devices on each node, and rank 5 has only x and z",
        ),
        (
            2,
            "aabb",
            [".y", ".y", "x.", "x."],
            "network devices on each node, and only 0 of them reach all nodes",
        ),
    ],
)
def test_why_fewer(wanted: int, hosts: str, names: list[str], why: str) -> None:
    """It is said which rank's node has too few ranks or devices."""
    found = why_fewer(
        wanted, layout_of(hosts, frozenset()), [told(each) for each in names]
    )
    assert found == (f"RAILS={wanted} needs as many {why}" if why else "")


def test_path() -> None:
    """Each rank names the devices of its own node, and why there are no more."""
    layout = led(layout_of("aabb", frozenset()), [[False] * 4] * 2)
    shared = Shared(layout, 3, cast("Node", None), None, crowded=False)
    nodes = "between 2 nodes, on each of which 2 ranks share memory"
    told_by = ["a", "b", "c", "d"]
    assert shared.path(told_by) == f"2 rails: c; d, {nodes}"
    shared = shared._replace(layout=layout_of("aabb", frozenset()))
    assert shared.path(told_by) == f"c, {nodes}"
    assert shared._replace(limit="why").path(told_by) == f"c, {nodes}; why"
