# SPDX-License-Identifier: BSD-3-Clause
"""Builders return the fabrics that their names promise."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mpimcast._fabric.clos import clos2, clos3, fat_tree, paper, single
from mpimcast._fabric.dragonfly import dragonfly
from mpimcast._fabric.fabric import Fabric
from mpimcast._fabric.link import Link
from mpimcast._fabric.nodes import nodes
from mpimcast._fabric.rails import rails
from mpimcast._fabric.routes import Routes
from mpimcast._fabric.sites import two_sites


def tiers(fabric: Fabric) -> Counter[str]:
    """Return how many switches of each tier a fabric has."""
    return Counter(fabric.tier(switch) for switch in range(fabric.nswitches))


def ports(fabric: Fabric) -> list[int]:
    """Return how many ports of each switch are in use."""
    hosts = Counter(fabric.switches.tolist())
    return [fabric.graph.out_degree(s) + hosts[s] for s in range(fabric.nswitches)]


def test_single() -> None:
    """All hosts are at one switch."""
    fabric = single(5, Link("", mbits=10))
    assert (fabric.nhosts, fabric.nswitches) == (5, 1)
    assert fabric.links.classes == ["host down", "host up"]
    assert set(fabric.links.numbers("mbits", int)) == {10}


def test_paper() -> None:
    """The paper's fabric has 18 switches of 36 ports, and room for 216 hosts."""
    fabric = paper(216)
    assert tiers(fabric) == {"leaf": 12, "spine": 6}
    assert ports(fabric) == [36] * 18
    assert tiers(paper()) == tiers(fabric)
    assert len(set(paper().racks.tolist())) == 11
    with pytest.raises(ValueError, match="1 to 216 hosts, not for 217"):
        paper(217)


@pytest.mark.parametrize("k", [2, 4, 8])
def test_fat_tree(k: int) -> None:
    """A full fat tree has k^3 / 4 hosts and uses all ports."""
    fabric = fat_tree(k)
    assert fabric.nhosts == k**3 // 4
    assert tiers(fabric) == {
        "leaf": k * k // 2,
        "spine": k * k // 2,
        "core": k * k // 4,
    }
    assert ports(fabric) == [k] * fabric.nswitches


@settings(deadline=None)
@given(st.integers(4, 16), st.sampled_from([1, 1.5, 2, 3]), st.integers(1, 60))
def test_clos(radix: int, oversubscription: float, nhosts: int) -> None:
    """No switch has more than its ports; a leaf has the share of links up."""
    for build in (clos2, clos3):
        down = round(radix * oversubscription / (1 + oversubscription))
        leaves = radix if build is clos2 else radix * round(radix / 2)
        if nhosts > leaves * down:
            with pytest.raises(ValueError, match="room for"):
                build(radix, nhosts, oversubscription)
            continue
        fabric = build(radix, nhosts, oversubscription)
        assert fabric.nhosts == nhosts
        assert max(ports(fabric)) <= radix
        hosts = Counter(fabric.switches.tolist())
        ups = fabric.graph.out_degree(0)
        assert max(hosts.values()) + ups <= radix
        assert ups == radix - down


def test_parallel_cables() -> None:
    """Leaves joined to each spine by three cables need a third of the spines."""
    fabric = clos2(36, parallel=3)
    assert tiers(fabric) == {"leaf": 12, "spine": 6}
    assert fabric.nhosts == 216
    with pytest.raises(ValueError, match="18 links"):
        clos2(36, parallel=4)


@pytest.mark.parametrize(
    ("build", "match"),
    [
        (lambda: fat_tree(5), "not 5"),
        (lambda: clos2(4, oversubscription=100), "oversubscribed"),
        (lambda: dragonfly(0, 1, 1), "dragonfly"),
        (lambda: rails(1, 1, 0), "pods"),
        (lambda: nodes(single(1), 0), "0 ranks"),
        (lambda: single(0), "not for 0"),
        (lambda: Link("up", mbits=0), "mbits of link 'up' is 0"),
        (lambda: Link("up", burst_bytes=5), "burst"),
        (lambda: Link("up", mbits=5, burst_bytes=5, burst_mbits=5), "burst"),
    ],
)
def test_impossible(build: object, match: str) -> None:
    """What cannot be built is refused with a reason."""
    assert callable(build)
    with pytest.raises(ValueError, match=match):
        build()


@pytest.mark.parametrize(("a", "p", "h"), [(4, 2, 2), (3, 1, 1), (2, 3, 4)])
def test_dragonfly(a: int, p: int, h: int) -> None:
    """Each two groups of a full dragonfly are joined once, by all global ports."""
    fabric = dragonfly(a, p, h)
    ngroups = a * h + 1
    assert (fabric.nhosts, fabric.nswitches) == (a * p * ngroups, a * ngroups)
    assert ports(fabric) == [p + a - 1 + h] * fabric.nswitches
    pairs = Counter(
        (start // a, end // a)
        for start, end, link in fabric.graph.edges(data="link")
        if link.name == "global"
    )
    assert len(pairs) == ngroups * (ngroups - 1)
    assert set(pairs.values()) == {1}


def test_small_dragonfly() -> None:
    """Fewer groups than there could be are joined by more cables, all pairs alike."""
    fabric = dragonfly(4, 2, 2, 24)
    pairs = Counter(
        (start // 4, end // 4)
        for start, end, link in fabric.graph.edges(data="link")
        if link.name == "global"
    )
    assert set(pairs.values()) == {4}
    assert len(pairs) == 6
    assert max(ports(fabric)) <= 2 + 3 + 2


def test_rails() -> None:
    """Each node has one link to each rail switch of its pod."""
    fabric = rails(2, 4, 3)
    assert tiers(fabric) == {"spine": 2, "rail": 6, "node": 8}
    assert fabric.nhosts == 2 * 4 * 3
    costs = Routes(fabric).costs
    first, last = fabric.hosts[0].switch, fabric.hosts[-1].switch
    assert costs[first, fabric.hosts[3].switch] == 2
    assert costs[first, last] == 4
    assert "spine" not in tiers(rails(1, 4, 3))


def test_two_sites() -> None:
    """All routes between sites go over the long link, and none within a site."""
    fabric = two_sites(fat_tree(4), 1000, 5_000_000)
    routes = Routes(fabric)
    assert fabric.nhosts == 32
    long = [link for link in fabric.links.links if link.name == "long"]
    assert {(link.mbits, link.latency_ns) for link in long} == {(1000, 5_000_000)}
    assert len(long) == 2
    switches = fabric.switches
    assert routes.costs[switches[0], switches[15]] == 4
    assert routes.costs[switches[0], switches[16]] == 4 + 300
    assert len(set(fabric.racks.tolist())) == 16


def test_nodes() -> None:
    """A node's ranks share its link, which keeps its class."""
    fabric = nodes(paper(), 4)
    assert fabric.nhosts == 188 * 4
    assert tiers(fabric)["node"] == 188
    counts = Counter(link.name for link in fabric.links.links)
    assert counts["host up"] == counts["host down"] == 188
    assert counts["node up"] == 188 * 4


def test_loss_periods() -> None:
    """Between two loss periods at least one datagram passes."""
    assert Link("a", loss_ppb=750_000_000, loss_period=3).loss_period == 3
    with pytest.raises(ValueError, match="loss_ppb of link 'a' is 750000001"):
        Link("a", loss_ppb=750_000_001, loss_period=3)
    with pytest.raises(ValueError, match="loss_period of link 'a' is 0"):
        Link("a", loss_period=0)


def test_changed_links() -> None:
    """A change reaches each link once, with the vertices of its ends."""
    fabric = paper()
    seen = []

    def change(start: int, end: int, link: Link) -> Link:
        seen.append((start, end))
        return Link(link.name, loss_ppb=1000 * start + end)

    table = fabric.changed(change).links
    expected = (1000 * table.start.astype(int) + table.end).tolist()
    assert table.numbers("loss_ppb", int).tolist() == expected
    assert sorted(seen) == sorted(zip(table.start, table.end, strict=True))
