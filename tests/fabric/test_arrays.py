# SPDX-License-Identifier: BSD-3-Clause
"""The arrays for the simulator describe the fabric, the same on every machine."""

from __future__ import annotations

from dataclasses import fields
from hashlib import sha256

import numpy as np
import pytest
from fabrics import fabrics, groups
from hypothesis import given, settings
from hypothesis import strategies as st

from mpimcast._fabric import placement
from mpimcast._fabric.arrays import Arrays, arrays
from mpimcast._fabric.clos import paper
from mpimcast._fabric.dragonfly import dragonfly
from mpimcast._fabric.fabric import Fabric
from mpimcast._fabric.nodes import nodes
from mpimcast._fabric.rendezvous import Rendezvous
from mpimcast._fabric.routes import Routes
from mpimcast._fabric.subnet_manager import SubnetManager

FIELDS_OF_64_BITS = {"link_queue_bytes", "link_burst_bytes"}


def pairs() -> Fabric:
    """Return a dragonfly with two ranks a node."""
    return nodes(dragonfly(4, 2, 2), 2)


def described(fabric: Fabric) -> Arrays:
    """Return the arrays of a fabric with two kinds of trees."""
    routes = Routes(fabric)
    ranks = range(fabric.nhosts)
    rendezvous = Rendezvous(fabric, routes)
    trees = SubnetManager(fabric, routes).trees(ranks, 5)
    return arrays(routes, [*trees, rendezvous.tree(ranks, 0xEF000001)])


@settings(deadline=None)
@given(st.data())
def test_arrays(data: st.DataObject) -> None:
    """Links are in order; routes and trees list links of the switch they are for."""
    fabric = data.draw(fabrics())
    routes = Routes(fabric)
    manager = SubnetManager(fabric, routes)
    trees = manager.trees(data.draw(groups(fabric)), 2)
    found = arrays(routes, trees)
    nhosts, nswitches = fabric.nhosts, fabric.nswitches
    for host in range(nhosts):
        switch = nhosts + fabric.hosts[host].switch
        up, down = host, nhosts + host
        assert (found.link_from[up], found.link_to[up]) == (host, switch)
        assert (found.link_from[down], found.link_to[down]) == (switch, host)
    ends = zip(found.link_from[2 * nhosts :], found.link_to[2 * nhosts :], strict=True)
    listed = [(int(start) - nhosts, int(end) - nhosts) for start, end in ends]
    assert listed == sorted(fabric.graph.edges())
    for row in range(nswitches**2):
        links = found.route_links[found.route_first[row] : found.route_first[row + 1]]
        assert links.size if row // nswitches != row % nswitches else not links.size
        assert (found.link_from[links] == nhosts + row // nswitches).all()
    for row in range(len(trees) * nswitches):
        links = found.tree_links[found.tree_first[row] : found.tree_first[row + 1]]
        assert (found.link_from[links] == nhosts + row % nswitches).all()
        assert set(links.tolist()) <= set(trees[row // nswitches].links.tolist())
    assert len(found.tree_links) == sum(len(tree.links) for tree in trees)


def test_types() -> None:
    """All arrays have 32 bits, except for bytes, and the classes have names."""
    found = described(paper())
    for field in fields(found):
        value = getattr(found, field.name)
        if isinstance(value, np.ndarray):
            wide = field.name in FIELDS_OF_64_BITS
            assert value.dtype == (np.uint64 if wide else np.uint32), field.name
            assert value.flags.c_contiguous
    assert found.classes == ["host down", "host up", "leaf down", "leaf up"]
    assert found.classes[found.link_class[0]] == "host up"


@pytest.mark.parametrize(
    ("build", "digest"),
    [
        (lambda: placement.shuffled(paper(), 7), "c42781e77b7bbb9c"),
        (
            lambda: placement.interleaved(pairs()),
            "e7ffccb3618e60ec",
        ),
    ],
    ids=["paper", "dragonfly"],
)
def test_the_same_everywhere(build: object, digest: str) -> None:
    """The bytes of all arrays are those that other machines have computed."""
    assert callable(build)
    found = described(build())
    hasher = sha256()
    for field in fields(found):
        value = getattr(found, field.name)
        if isinstance(value, np.ndarray):
            hasher.update(value.astype(value.dtype.newbyteorder("<")).tobytes())
    assert hasher.hexdigest()[:16] == digest
