# SPDX-License-Identifier: BSD-3-Clause
"""Folded Clos networks: one switch, leaves and spines, fat trees."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mpimcast._fabric.wiring import LINK, Wiring, counted

if TYPE_CHECKING:
    from mpimcast._fabric.fabric import Fabric
    from mpimcast._fabric.link import Link


def single(nhosts: int, link: Link = LINK) -> Fabric:
    """Return the fabric of one switch."""
    wiring = Wiring()
    switch = wiring.switch("leaf")
    for _ in range(counted(nhosts, 1 << 16)):
        wiring.host(switch, link, rack=0)
    return wiring.fabric()


def _ports(radix: int, oversubscription: float) -> tuple[int, int]:
    """Return how many ports of a switch lead down, and how many up.

    Raises
    ------
    ValueError
        If either would be none.
    """
    down = round(radix * oversubscription / (1 + oversubscription))
    if not 1 <= down < radix:
        raise ValueError(
            f"a switch of {radix} ports cannot be oversubscribed {oversubscription}:1"
        )
    return down, radix - down


def clos2(
    radix: int,
    nhosts: int | None = None,
    oversubscription: float = 1.0,
    parallel: int = 1,
    link: Link = LINK,
) -> Fabric:
    """Return leaves and spines of a given radix, each leaf joined to each spine.

    Parameters
    ----------
    radix
        The number of ports of each switch.
    nhosts
        How many hosts there are. They fill leaf after leaf, and there are no more
        leaves than they need. By default the fabric is full.
    oversubscription
        How many of a leaf's ports lead to hosts for each that leads to a spine; the
        number of ports is rounded.
    parallel
        How many cables join a leaf to a spine; the more, the fewer spines.
    link
        What all links are like, but for their classes: "host up", "host down",
        "leaf up" and "leaf down".

    Raises
    ------
    ValueError
        If there is no such fabric.
    """
    down, up = _ports(radix, oversubscription)
    if parallel < 1 or up % parallel:
        raise ValueError(f"{up} links of a leaf cannot go to spines {parallel} each")
    nleaves_max = radix // parallel
    nhosts = counted(nhosts, nleaves_max * down)
    shape = _Shape(-(-nhosts // down), up // parallel, parallel, down)
    return _two_levels(shape, nhosts, link)


class _Shape(NamedTuple):
    """The numbers of leaves, of spines, of cables for each pair, of hosts of a leaf."""

    nleaves: int
    nspines: int
    parallel: int
    down: int


def _two_levels(shape: _Shape, nhosts: int, link: Link) -> Fabric:
    """Return leaves and spines with hosts that fill leaf after leaf."""
    wiring = Wiring()
    leaves = [wiring.switch("leaf") for _ in range(shape.nleaves)]
    spines = [wiring.switch("spine") for _ in range(shape.nspines)]
    for leaf in leaves:
        for spine in spines:
            for _ in range(shape.parallel):
                wiring.raise_to(leaf, spine, link)
    for host in range(nhosts):
        rack = host // shape.down
        wiring.host(leaves[rack], link, rack)
    return wiring.fabric()


def paper(nhosts: int = 188, link: Link = LINK) -> Fabric:
    """Return the fabric of the paper: 18 switches of 36 ports.

    12 leaves have 18 hosts at most, and 3 cables to each of 6 spines. The hosts fill
    leaf after leaf, so that the 188 of the paper occupy 11 leaves.
    """
    shape = _Shape(nleaves=12, nspines=6, parallel=3, down=18)
    return _two_levels(shape, counted(nhosts, shape.nleaves * shape.down), link)


def clos3(
    radix: int,
    nhosts: int | None = None,
    oversubscription: float = 1.0,
    spine_oversubscription: float = 1.0,
    link: Link = LINK,
) -> Fabric:
    """Return pods of leaves and spines, which core switches join.

    Each leaf of a pod is joined to each of the pod's spines; spine number i of every
    pod is joined to all core switches of plane i.

    Parameters
    ----------
    radix
        The number of ports of each switch.
    nhosts
        How many hosts there are. They fill leaf after leaf, and there are no more
        leaves and pods than they need. By default the fabric is full.
    oversubscription, spine_oversubscription
        How many ports of a leaf, or of a spine, lead down for each that leads up; the
        number of ports is rounded.
    link
        What all links are like, but for their classes: "host", "leaf" and "spine",
        each "up" and "down".

    Raises
    ------
    ValueError
        If there is no such fabric.
    """
    down, up = _ports(radix, oversubscription)
    nleaves_pod, plane = _ports(radix, spine_oversubscription)
    nhosts = counted(nhosts, radix * nleaves_pod * down)
    nleaves = -(-nhosts // down)
    npods = -(-nleaves // nleaves_pod)
    wiring = Wiring()
    leaves = [wiring.switch("leaf") for _ in range(nleaves)]
    spines = [[wiring.switch("spine") for _ in range(up)] for _ in range(npods)]
    for number, leaf in enumerate(leaves):
        for spine in spines[number // nleaves_pod]:
            wiring.raise_to(leaf, spine, link)
    for i in range(up if npods > 1 else 0):
        cores = [wiring.switch("core") for _ in range(plane)]
        for pod in spines:
            for core in cores:
                wiring.raise_to(pod[i], core, link, "spine")
    for host in range(nhosts):
        wiring.host(leaves[host // down], link, rack=host // down)
    return wiring.fabric()


def fat_tree(k: int, nhosts: int | None = None, link: Link = LINK) -> Fabric:
    """Return the k-ary fat tree of three levels, which has k^3 / 4 hosts.

    Parameters
    ----------
    k
        The number of ports of each switch, which is even.
    nhosts, link
        As of `clos3`.

    Raises
    ------
    ValueError
        If there is no such fabric.
    """
    if k < 1 or k % 2:
        raise ValueError(f"the switches of a fat tree have 2, 4, 6... ports, not {k}")
    return clos3(k, nhosts, link=link)
