# SPDX-License-Identifier: BSD-3-Clause
"""Which ranks have threads that receive for them."""

from __future__ import annotations

import pytest

from mpimcast._native.draft import Draft
from mpimcast._native.transport import Udp
from mpimcast._settings.config import Config


def draft(nprocessors: int) -> Draft:
    """Return the draft of a team on one host, as seen by a rank of it."""
    return Draft(
        rank=0,
        hosts=("a", "a"),
        nlocal=2,
        nprocessors=nprocessors,
        crowded=False,
        addresses=(),
        name="1",
        group=0,
        port=20480,
        qkey=0,
    )


@pytest.mark.parametrize(
    ("subgroups", "nprocessors", "has"),
    [(1, 64, False), (2, 0, False), (2, 2, False), (2, 3, True), (4, 3, False)],
)
def test_auto(subgroups: int, nprocessors: int, has: bool) -> None:
    """Each subgroup has a worker if all find a processor beside the rank's own."""
    config = Config.read({"subgroups": str(subgroups)}, {})
    assert Udp(config, draft(nprocessors)).has_workers() is has


@pytest.mark.parametrize(("workers", "has"), [("on", True), ("off", False)])
def test_said(workers: str, has: bool) -> None:
    """WORKERS says it, whatever processors there are."""
    config = Config.read({"workers": workers}, {})
    assert Udp(config, draft(0)).has_workers() is has
    config = Config.read({"workers": workers, "subgroups": "2"}, {})
    assert Udp(config, draft(64)).has_workers() is has
