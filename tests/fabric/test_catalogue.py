# SPDX-License-Identifier: BSD-3-Clause
"""Fabrics by name: each text builds what its builder does, or is refused with words."""

from __future__ import annotations

import pytest

from mpimcast._fabric.catalogue import FABRICS, TWO_SITES, built
from mpimcast._fabric.clos import clos2, clos3, fat_tree, paper, single
from mpimcast._fabric.dragonfly import dragonfly
from mpimcast._fabric.fabric import Fabric
from mpimcast._fabric.link import Link
from mpimcast._fabric.rails import rails
from mpimcast._fabric.sites import two_sites

LINK = Link("", mbits=25_000, latency_ns=77)

WANTED = {
    "single:hosts=5": single(5, LINK),
    "clos2:radix=8": clos2(8, link=LINK),
    "clos2:radix=12,hosts=20,oversubscription=2,parallel=2": clos2(
        12, 20, 2.0, 2, LINK
    ),
    "clos3:radix=4,spine-oversubscription=1": clos3(4, link=LINK),
    "fat-tree:k=4,hosts=9": fat_tree(4, 9, LINK),
    "paper": paper(link=LINK),
    "paper:hosts=40": paper(40, LINK),
    "dragonfly:a=2,p=2,h=1": dragonfly(2, 2, 1, link=LINK),
    "rails:pods=2,nodes=3,rails=2": rails(2, 3, 2, link=LINK),
    "two-sites:site=clos2,radix=4,hosts=4,long-rate=10,long-latency=5000": two_sites(
        clos2(4, 4, link=LINK), 10_000, 5_000_000, LINK
    ),
}


def plain(fabric: Fabric) -> tuple[object, ...]:
    """Return all of a fabric in a form that can be compared."""
    table = fabric.links
    return (
        table.links,
        table.start.tolist(),
        table.end.tolist(),
        fabric.racks.tolist(),
        [fabric.tier(switch) for switch in range(fabric.nswitches)],
    )


@pytest.mark.parametrize("text", WANTED)
def test_texts(text: str) -> None:
    """A text builds the fabric that it describes, of links as the caller wants them."""
    assert plain(built(text, LINK)) == plain(WANTED[text])


def test_all_names_are_tried() -> None:
    """The test above knows every fabric."""
    assert {text.partition(":")[0] for text in WANTED} == {*FABRICS, TWO_SITES}


def test_a_switch_has_as_many_hosts_as_needed() -> None:
    """The caller says how many hosts a switch has if the text does not."""
    assert built("single", nhosts=7).nhosts == 7
    assert built("single:hosts=3", nhosts=7).nhosts == 3
    assert built("clos2:radix=4", nhosts=1).nhosts == 8


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "there is no fabric ''; there are single, clos2"),
        ("torus:k=3", "there is no fabric 'torus'"),
        ("single", "single needs a value of 'hosts'"),
        ("clos2", "clos2 needs a value of 'radix'"),
        ("clos2:radix=", "clos2 needs a value of 'radix'"),
        ("clos2:radix=8,hosts=", "clos2 needs a value of 'hosts'"),
        ("clos2:radix=8,k=3", "clos2 has no 'k'; it has radix, hosts"),
        ("clos2:radix=8,radix=8", "'radix=8' is not valid: each KEY=VALUE is given"),
        ("clos2:radix", "'radix' is not valid: each KEY=VALUE"),
        ("clos2:radix=-8", "radix of clos2: '-8' is no whole number"),
        ("clos2:radix=²", "is no whole number"),
        ("clos2:radix=8,oversubscription=nan", "oversubscription of clos2: 'nan' is"),
        ("clos2:radix=8,oversubscription=x", "oversubscription of clos2: could not"),
        ("clos2:radix=8,hosts=1000", "has room for 1 to 32 hosts, not for 1000"),
        ("two-sites:long-rate=1,long-latency=1", "two-sites needs site, one of single"),
        ("two-sites:site=two-sites", "two-sites needs site, one of single"),
        ("two-sites:site=paper,long-rate=1", "two-sites needs a value of 'long-lat"),
        ("two-sites:site=paper,x=1,long-rate=1,long-latency=1", "paper has no 'x'"),
    ],
)
def test_refusals(text: str, why: str) -> None:
    """What is no fabric is refused, with what is wrong."""
    with pytest.raises(ValueError, match=why.replace("(", r"\(")):
        built(text)
