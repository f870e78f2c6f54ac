# SPDX-License-Identifier: BSD-3-Clause
"""The simulator on any fabric: each link's bytes are those that the graph demands."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mpimcast._fabric.arrays import Arrays, arrays
from mpimcast._fabric.clos import clos2, fat_tree, paper
from mpimcast._fabric.fabric import Fabric
from mpimcast._fabric.routes import Routes
from mpimcast._fabric.subnet_manager import SubnetManager
from mpimcast._fabric.traffic import multicast
from mpimcast._fabric.tree import Tree
from mpimcast.cli.sim import simulator
from mpimcast.cli.sim.scene import Scene
from mpimcast.errors import ConfigError

sys.path.append(str(Path(__file__).parents[1]))
from simulated import HEADER_BYTES, MULTICAST, NAK, POLICIES

FRAME_BYTES = 42  # of Ethernet, IP and UDP
CHUNK_BYTES = 1000


def described(fabric: Fabric, nsubgroups: int = 1) -> tuple[Arrays, list[Tree]]:
    """Return a fabric as arrays, and its trees."""
    routes = Routes(fabric)
    trees = SubnetManager(fabric, routes).trees(range(fabric.nhosts), nsubgroups)
    return arrays(routes, trees), trees


def spec(nranks: int, nchunks: int, **more: object) -> simulator.Plain:
    """Return the spec of an Allgather of whole chunks."""
    return {
        "nranks": nranks,
        "chunk_bytes": CHUNK_BYTES,
        "block_bytes": nchunks * CHUNK_BYTES,
        "eager_bytes": 0,
        **more,
    }


FABRICS = st.one_of(
    st.integers(2, 20).map(lambda n: clos2(radix=8, nhosts=n)),
    st.integers(2, 16).map(lambda n: fat_tree(4, nhosts=n)),
    st.integers(2, 24).map(lambda n: paper(nhosts=n)),
)


@settings(max_examples=40, deadline=None)
@given(FABRICS, st.integers(1, 5))
def test_multicast_takes_each_link_of_the_tree_once(
    fabric: Fabric, nchunks: int
) -> None:
    """Without losses each link carries what brute force counts on the graph."""
    table, (tree,) = described(fabric)
    result = simulator.run(spec(fabric.nhosts, nchunks), Scene(table))
    assert not result["violation"]
    chunk_bytes = CHUNK_BYTES + HEADER_BYTES + FRAME_BYTES
    sent = np.full(fabric.nhosts, nchunks * chunk_bytes, np.uint64)
    seen = [link["kind_bytes"][MULTICAST] for link in result["links"]]
    # Control messages to all are multicasts too, but of a kind of their own.
    assert seen == multicast(tree, sent).tolist()


@settings(max_examples=25, deadline=None)
@given(
    FABRICS,
    st.integers(1, 4),
    st.sampled_from(POLICIES),
    st.integers(0, 999),
    st.integers(1, 20),
)
def test_losses_anywhere_are_repaired(
    fabric: Fabric, nsubgroups: int, repair: int, seed: int, period: int
) -> None:
    """Losses on any links, and several trees: the bytes are right, and none is lost."""
    lossy = fabric.changed(
        lambda _start, _end, link: replace(
            link, loss_ppb=20_000_000, loss_period=period
        )
    )
    table, _ = described(lossy, nsubgroups)
    result = simulator.run(
        spec(fabric.nhosts, 8, subgroups=nsubgroups, repair=repair, seed=seed),
        Scene(table),
    )
    assert not result["violation"]


def test_the_same_seed_gives_the_same_trace() -> None:
    """A run depends on its spec and its fabric alone."""
    table, _ = described(paper(nhosts=40), 2)
    one, other = (
        simulator.run(spec(40, 4, subgroups=2, repair=NAK), Scene(table))
        for _ in range(2)
    )
    assert one == other


def test_a_fabric_needs_a_host_for_each_rank() -> None:
    """Fewer hosts than ranks are refused."""
    table, _ = described(clos2(radix=8, nhosts=6))
    with pytest.raises(ConfigError, match="cannot be simulated"):
        simulator.run(spec(7, 1), Scene(table))
