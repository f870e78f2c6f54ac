# SPDX-License-Identifier: BSD-3-Clause
"""The pieces of a collective have each byte of each block once."""

from __future__ import annotations

from itertools import accumulate

from hypothesis import given
from hypothesis import strategies as st

from mpimcast._session import cutting

SIZES = st.lists(st.integers(0, 5000), min_size=1, max_size=9)


@given(SIZES, st.integers(64 * 9, 20_000), st.integers(0, 100))
def test_every_byte_once(sizes: list[int], piece_bytes: int, gap: int) -> None:
    """Parts follow each other in their blocks, and fill slots without gaps."""
    places = [0, *accumulate(size + gap for size in sizes[:-1])]
    pieces = cutting.cut(sizes, places, piece_bytes)
    for block, size in enumerate(sizes):
        end = 0
        for parts in pieces:
            part = parts[block]
            assert part.place == places[block] + part.within
            assert part.within == end or part.nbytes == 0
            end += part.nbytes
        assert end == size
    for parts in pieces:
        ends = accumulate(part.nbytes for part in parts)
        assert [part.slot for part in parts] == [0, *ends][:-1]
        assert sum(part.nbytes for part in parts) <= piece_bytes
    if sum(sizes) <= piece_bytes:
        assert len(pieces) == 1


def test_ranks_agree() -> None:
    """All ranks cut if one of them has a driver, and none does otherwise."""
    assert cutting.cut_bytes([{"devices": False}, {"devices": True}]) > 0
    assert cutting.cut_bytes([{"devices": False}] * 2) == 0
