# SPDX-License-Identifier: BSD-3-Clause
"""Ranks with emulated adapters, of whose processors all harts stop but the first."""

from __future__ import annotations

import time

import pytest
from gathering import gather_and_check
from proxied import Make

from mpimcast import Error

pytestmark = pytest.mark.network

# Within this time the adapter's first hart has to answer, on a busy machine, too.
TIMEOUT_S = 5


def test_harts_that_stop(make_proxied: Make, adapter: str) -> None:
    """All ranks fail in time, and say that a device is of no use any more."""
    if not adapter:
        pytest.skip("runs with --adapter, and harts that stop")
    comm = make_proxied(
        "all",
        subgroups=2,
        chunk_bytes=1024,
        timeout=TIMEOUT_S,
        late_timeout=TIMEOUT_S,
    )
    last_s = time.monotonic()

    def gather_until_it_fails() -> None:
        nonlocal last_s
        while True:
            last_s = time.monotonic()
            gather_and_check(comm, 100_000)

    with pytest.raises(Error, match="no usable device"):
        gather_until_it_fails()
    assert time.monotonic() - last_s < 4 * TIMEOUT_S + 1
