# SPDX-License-Identifier: BSD-3-Clause
"""Dragonflies: groups of routers, each joined to each, and the groups likewise."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from mpimcast._fabric.wiring import LINK, Wiring, counted

if TYPE_CHECKING:
    from mpimcast._fabric.fabric import Fabric
    from mpimcast._fabric.link import Link

# A route with one global link and two local ones is to be cheaper than one with two
# global links, so that shortest routes are the minimal ones of the dragonfly.
_GLOBAL_COST = 3


def dragonfly(
    a: int, p: int, h: int, nhosts: int | None = None, link: Link = LINK
) -> Fabric:
    """Return a dragonfly, named as by Kim et al. 2008.

    In a group each two routers are joined by one cable, and each two groups by as many
    cables as the routers' global ports allow for all pairs alike.

    Parameters
    ----------
    a
        The number of routers of a group.
    p
        The number of hosts of a router.
    h
        The number of global links of a router.
    nhosts
        How many hosts there are. They fill group after group, and there are no more
        groups than they need. By default there are ``a * h + 1`` full groups.
    link
        What all links are like, but for their classes: "host up", "host down", "local"
        and "global".

    Raises
    ------
    ValueError
        If there is no such fabric.
    """
    if min(a, p, h) < 1:
        raise ValueError(f"a dragonfly has no {a} routers of {p} hosts and {h} links")
    nhosts = counted(nhosts, (a * h + 1) * a * p)
    ngroups = -(-nhosts // (a * p))
    wiring = Wiring()
    routers = [[wiring.switch("router") for _ in range(a)] for _ in range(ngroups)]
    local = replace(link, name="local")
    for group in routers:
        for number, router in enumerate(group):
            for other in group[number + 1 :]:
                wiring.join(router, other, local, local)
    _join_groups(wiring, routers, h, replace(link, name="global", cost=_GLOBAL_COST))
    for host in range(nhosts):
        router = host // p
        wiring.host(routers[router // a][router % a], link, rack=router)
    return wiring.fabric()


def _join_groups(wiring: Wiring, routers: list[list[int]], h: int, link: Link) -> None:
    """Join each two groups; port j of a group is port ``j % h`` of router ``j // h``.

    The ports of a group lead to the groups after it in turn, and round again while all
    groups can be served once more.
    """
    ngroups = len(routers)
    nothers = ngroups - 1
    nrounds = len(routers[0]) * h // nothers if nothers else 0
    for turn in range(nrounds):
        for group in range(ngroups):
            for other in range(group + 1, ngroups):
                ahead = other - group
                port = turn * nothers + ahead - 1
                back = turn * nothers + nothers - ahead
                wiring.join(
                    routers[group][port // h], routers[other][back // h], link, link
                )
