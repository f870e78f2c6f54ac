# SPDX-License-Identifier: BSD-3-Clause
"""Which ranks are on which node, who leads it, and what a node gives to a stream."""

from __future__ import annotations

import os
from pathlib import Path
from typing import cast

import pytest

from mpimcast._native.layout import Layout
from mpimcast._native.node import Node
from mpimcast._session.nodes import is_near, layout_of, processors
from mpimcast._session.sharing import Shared


def test_layout() -> None:
    """Nodes are numbered by their first ranks; a lone rank is a node of its own."""
    assert layout_of("baab", frozenset()) == ((0, 1, 1, 0), ((0, 1),))
    assert layout_of("aaab", frozenset({1})) == ((0, 1, 0, 2), ((0, 1, 3),))
    assert layout_of("aa", frozenset({0, 1})) == ((0, 1), ((0, 1),))
    layout = layout_of("abcabb", frozenset())
    assert layout.members(1) == (1, 4, 5)
    assert layout.firsts() == [0, 1, 2]
    assert layout.nnodes == 3


@pytest.mark.parametrize(
    ("hosts", "words"),
    [
        ("aaa", "one node, 3 ranks"),
        ("abab", "2 nodes, on each of which 2 ranks share memory"),
        ("abb", "2 nodes, on each of which 1 to 2 ranks share memory"),
    ],
)
def test_words(hosts: str, words: str) -> None:
    """A layout says how many ranks share a node."""
    assert str(layout_of(hosts, frozenset())) == words


def test_processors(tmp_path: Path) -> None:
    """A rank is near a device if all its processors are in the device's list."""
    assert processors("0-2,5\n") == {0, 1, 2, 5}
    assert processors("7") == {7}
    mine = os.sched_getaffinity(0)
    (tmp_path / "local_cpulist").write_text(",".join(map(str, mine)))
    assert is_near(str(tmp_path))
    (tmp_path / "local_cpulist").write_text(str(max(mine) + 1))
    assert not is_near(str(tmp_path))
    assert not is_near("")
    (tmp_path / "local_cpulist").write_text("\n")
    assert not is_near(str(tmp_path))


def test_agreed_slots() -> None:
    """All nodes take the least slots that any of them proposes."""
    layout = Layout((0, 1, 0, 1), ((2, 1),))
    node = cast("Node", None)
    proposals = [[65536, 4, 512], [131072, 2, 1024], None, None]
    for rank, offset_bytes in enumerate([65536, 131072, 65536, 131072]):
        shared = Shared(layout, rank, node, None, crowded=False)
        assert shared.agree(proposals) == (offset_bytes, (2, 512))
        assert shared.agree([proposals[0], None, None, None]) is None
