# SPDX-License-Identifier: BSD-3-Clause
"""The bytes on each link are those that are counted step by step."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from fabrics import balance, fabrics, flood, flow_hash, follow, groups, totals
from hypothesis import given, settings
from hypothesis import strategies as st

from mpimcast._fabric import traffic
from mpimcast._fabric.clos import paper
from mpimcast._fabric.fabric import Fabric
from mpimcast._fabric.mixing import flow_hashes, mix
from mpimcast._fabric.routes import Routes
from mpimcast._fabric.subnet_manager import SubnetManager

SEEDS = st.integers(0, 2**64 - 1)


def test_the_hash() -> None:
    """Splitmix64 from 0 on yields its published first numbers."""
    golden = 0x9E3779B97F4A7C15
    assert mix(golden) == 0xE220A8397B1DCDAF
    assert mix(2 * golden) == 0x6E789E6AA1B965F4


@settings(deadline=None)
@given(*[st.integers(0, 2**32 - 1)] * 3, SEEDS)
def test_hashes_of_flows(sender: int, receiver: int, switch: int, seed: int) -> None:
    """A hash over arrays is the same in plain integers."""
    given_arrays = (np.array([each], np.uint32) for each in (sender, receiver, switch))
    (found,) = flow_hashes(*given_arrays, seed)
    assert int(found) == flow_hash(sender, receiver, switch, seed)


@settings(deadline=None)
@given(st.data(), SEEDS)
def test_unicast(data: st.DataObject, seed: int) -> None:
    """Messages go the way of their hashes; no byte is lost or made in a switch."""
    fabric = data.draw(fabrics())
    routes = Routes(fabric)
    vertex = st.integers(0, fabric.nhosts + fabric.nswitches - 1)
    message = st.tuples(vertex, vertex, st.integers(0, 10**6))
    messages = [each for each in data.draw(st.lists(message)) if each[0] != each[1]]
    counts: Counter[int] = Counter()
    expected = np.zeros(fabric.nhosts + fabric.nswitches, np.int64)
    for sender, receiver, nbytes in messages:
        counts.update(dict.fromkeys(follow(routes, sender, receiver, seed), nbytes))
        expected[receiver] += nbytes
        expected[sender] -= nbytes
    table = np.array(messages, np.int64).reshape(-1, 3)
    senders, receivers = table[:, :2].astype(np.uint32).T
    found = traffic.unicast(
        routes, senders, receivers, table[:, 2].astype(np.uint64), seed
    )
    assert found.tolist() == totals(fabric, counts)
    assert balance(fabric, found).tolist() == expected.tolist()


@settings(deadline=None)
@given(st.data())
def test_multicast(data: st.DataObject) -> None:
    """Every rank gets all bytes but its own, each once."""
    fabric = data.draw(fabrics())
    ranks = sorted(data.draw(groups(fabric)))
    (tree,) = SubnetManager(fabric, Routes(fabric)).trees(ranks)
    sent = np.zeros(fabric.nhosts, np.uint64)
    counts: Counter[int] = Counter()
    for rank in data.draw(st.sets(st.sampled_from(ranks))):
        sent[rank] = data.draw(st.integers(1, 2**40))
        for link in flood(tree, rank):
            counts[link] += int(sent[rank])
    found = traffic.multicast(tree, sent)
    assert found.tolist() == totals(fabric, counts)
    received = found[fabric.nhosts : 2 * fabric.nhosts]
    for host in range(fabric.nhosts):
        assert received[host] == (sent.sum() - sent[host] if host in ranks else 0)


def test_a_multicast_from_outside() -> None:
    """A host whose switch is not in the tree cannot multicast."""
    fabric = paper()
    (tree,) = SubnetManager(fabric, Routes(fabric)).trees(range(18))
    sent = np.zeros(188, np.uint64)
    sent[187] = 1
    with pytest.raises(ValueError, match=r"switches \[10\]"):
        traffic.multicast(tree, sent)


def ring(fabric: Fabric) -> tuple[np.ndarray, np.ndarray]:
    """Return the senders and receivers of a ring of all hosts."""
    senders = np.arange(fabric.nhosts, dtype=np.uint32)
    return senders, np.roll(senders, -1)


def test_the_paper_s_fabric() -> None:
    """A chunk takes 199 links by multicast: 188 of hosts, 11 of leaves.

    Around the ring it takes two for each step within a leaf, and four between leaves.
    """
    fabric = paper()
    routes = Routes(fabric)
    (tree,) = SubnetManager(fabric, routes).trees(range(188))
    sent = np.ones(188, np.uint64)
    ours = traffic.multicast(tree, sent)
    assert ours.sum() == 188 * 199
    assert fabric.links.by_class(ours) == {
        "host down": 188 * 187,
        "host up": 188,
        "leaf down": 188 * 10,
        "leaf up": 188,
    }
    # Of the 188 steps of each block's way around, one is not made.
    around = traffic.unicast(routes, *ring(fabric), np.full(188, 187, np.uint64))
    assert around.sum() == 187 * (2 * 188 + 2 * 11)
    assert 1.98 < around.sum() / ours.sum() < 2.0
