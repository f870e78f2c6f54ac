# SPDX-License-Identifier: BSD-3-Clause
"""Streams get regions of a node's segment that do not overlap and are zero."""

from __future__ import annotations

import mmap
import os
import random

import pytest

from mpimcast._native.layout import Layout
from mpimcast._native.node import HEAD_BYTES
from mpimcast._native.segment import Clearing, create
from mpimcast._session.regions import Region, Regions, first_fit
from mpimcast._session.sharing import Keeper, Proposal

PAGE = 4096
NODE_BYTES = 64 << 20


def cleared() -> tuple[list[tuple[int, int]], Regions]:
    """Return the regions of ten pages behind one of head, and what is cleared."""
    calls: list[tuple[int, int]] = []
    return calls, Regions(100, 11 * PAGE + 5, lambda *each: calls.append(each))


def taken(regions: Regions, nbytes: int) -> Region:
    """Return a region, which must be there."""
    region = regions.take(nbytes)
    assert region is not None
    return region


def test_first_fit() -> None:
    """A region of whole pages is the first that is free and long enough."""
    _, regions = cleared()
    one, two, three = (taken(regions, nbytes) for nbytes in (1, PAGE + 1, PAGE))
    assert one == (PAGE, PAGE)
    assert two == (2 * PAGE, 2 * PAGE)
    assert three == (4 * PAGE, PAGE)
    assert regions.left_bytes == 6 * PAGE
    regions.give_back(one)
    regions.give_back(two)
    assert taken(regions, 4 * PAGE).offset_bytes == 5 * PAGE
    assert taken(regions, 3 * PAGE) == (PAGE, 3 * PAGE)
    assert taken(regions, 2 * PAGE) == (9 * PAGE, 2 * PAGE)
    assert regions.left_bytes == 0
    assert regions.take(1) is None


def test_only_used_memory_is_cleared() -> None:
    """Memory that no region has had before is zero, and is not touched."""
    calls, regions = cleared()
    first = taken(regions, 2 * PAGE)
    assert calls == []
    regions.give_back(first)
    taken(regions, 3 * PAGE)
    assert calls == [(PAGE, 2 * PAGE)]


def test_trim() -> None:
    """What a region does not need is free for others."""
    _, regions = cleared()
    whole = taken(regions, 10 * PAGE)
    kept = regions.trim(whole, PAGE + 1)
    assert kept == (PAGE, 2 * PAGE)
    assert taken(regions, 8 * PAGE).offset_bytes == 3 * PAGE
    regions.give_back(kept)
    assert taken(regions, 2 * PAGE) == kept


def test_random(seed: int) -> None:
    """However regions are taken and given back, no two overlap."""
    rng = random.Random(seed)
    _, regions = cleared()
    held: list[Region] = []
    for _ in range(1000):
        if held and rng.random() < 0.5:
            regions.give_back(held.pop(rng.randrange(len(held))))
        elif (region := regions.take(rng.randint(1, 4 * PAGE))) is not None:
            held.append(region)
        pages = [
            page
            for each in held
            for page in range(each.offset_bytes, each.offset_bytes + each.nbytes, PAGE)
        ]
        assert len(pages) == len(set(pages))
        assert all(PAGE <= page <= 10 * PAGE for page in pages)
        assert regions.left_bytes == (10 - len(pages)) * PAGE
    for each in held:
        regions.give_back(each)
    assert regions.left_bytes == 10 * PAGE


def test_modest_choices() -> None:
    """A stream takes less the fuller the segment is, and at last what there is."""
    _, regions = cleared()
    sizes = [5 * PAGE, 2 * PAGE, PAGE]
    found = [first_fit(regions, sizes, 2) for _ in range(7)]
    assert [each and each[0] for each in found] == [0, 2, 2, 2, 2, 2, None]


def test_clearing() -> None:
    """Cleared pages are zero to everyone who maps the segment; it keeps its size."""
    fd = create(4 * PAGE)
    try:
        with mmap.mmap(fd, 4 * PAGE) as seen:
            seen.write(b"\1" * 4 * PAGE)
            clearing = Clearing(fd, 4 * PAGE)
            clearing.clear(PAGE, 2 * PAGE)
            clearing.close()
            assert seen[:PAGE] == b"\1" * PAGE == seen[3 * PAGE :]
            assert seen[PAGE : 3 * PAGE] == bytes(2 * PAGE)
        for size in (3 * PAGE, 5 * PAGE):
            with pytest.raises(PermissionError):
                os.ftruncate(fd, size)
    finally:
        os.close(fd)


# ---- what is proposed for streams ---------------------------------------------


def proposals(
    layout: Layout, nbytes: int = NODE_BYTES, nrails: int = 1
) -> list[Proposal]:
    """Return all proposals of rank 0's node until nothing is left."""
    fd = create(nbytes)
    keeper = Keeper(fd, nbytes, nrails)
    found = []
    while (proposal := keeper.propose(layout, 0)) is not None:
        found.append(proposal)
    keeper.close()
    os.close(fd)
    return found


def test_proposals_of_one_node() -> None:
    """The default has room for 200 streams; the first have large slots."""
    found = proposals(Layout((0,) * 4, ((0,),)))
    assert found[0].slots == (4, 512 << 10)
    assert found[0].region.offset_bytes == HEAD_BYTES
    assert found[-1].slots.nbytes == 64 << 10
    assert len(found) >= 200
    sizes = [each.slots.number * each.slots.nbytes for each in found]
    assert sizes == sorted(sizes, reverse=True)


def test_proposals_between_nodes() -> None:
    """Between nodes slots are larger."""
    found = proposals(Layout((0, 0, 1, 1), ((0, 2),)))
    assert found[0].slots.nbytes == 8 << 20
    assert 2 <= found[0].slots.number <= 4
    assert found[-1].slots.nbytes == 64 << 10
    assert len(found) >= 40


@pytest.mark.parametrize(("nrails", "number"), [(2, 4), (3, 8), (8, 8)])
def test_proposals_over_rails(nrails: int, number: int) -> None:
    """Rails have slots for their pieces, which take no more memory in all."""
    layout = Layout((0, 0, 1, 1), ((0, 2),))
    found = proposals(layout, nrails=nrails)
    assert found[0].slots == (number, (16 << 20) // number)
    assert found[-1].slots.nbytes == 64 << 10
    assert len(found) >= 40


def test_proposals_to_many_ranks() -> None:
    """Each rank has at least 64 bytes of a slot."""
    found = proposals(Layout((0,) * 1000, ((0,),)))
    assert found[-1].slots.nbytes >= 64 * 1000


def test_no_proposals() -> None:
    """A segment without room for the least slots proposes nothing."""
    assert proposals(Layout((0, 0), ((0,),)), 64 << 10) == []
    assert len(proposals(Layout((0, 0), ((0,),)), 512 << 10)) >= 1
