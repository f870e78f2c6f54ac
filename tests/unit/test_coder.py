# SPDX-License-Identifier: BSD-3-Clause
"""Which ranks have a thread that computes parity and mends."""

from __future__ import annotations

import pytest

from mpimcast._settings.config import Config


@pytest.mark.parametrize("reliability", ["code", "auto"])
@pytest.mark.parametrize(
    ("coder", "nspare", "has"),
    [
        *(("auto", -1, False), ("auto", 0, False), ("auto", 1, True)),
        *(("on", -1, True), ("on", 64, True)),
        *(("off", -1, False), ("off", 64, False)),
    ],
)
def test_said(reliability: str, coder: str, nspare: int, has: bool) -> None:
    """CODER says it; auto has a coder if there is a processor to spare."""
    config = Config.read({"reliability": reliability, "coder": coder}, {})
    assert config.has_coder(nspare) is has


@pytest.mark.parametrize("settings", [{}, {"progress": "proxy", "reliability": "code"}])
def test_nothing_to_compute(settings: dict[str, str]) -> None:
    """Without a code, or where a proxy computes, there is no coder."""
    config = Config.read({"coder": "on", **settings}, {})
    assert not config.has_coder(64)
