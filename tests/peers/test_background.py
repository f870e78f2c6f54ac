# SPDX-License-Identifier: BSD-3-Clause
"""Background messages go between the given hosts, at the given share of their rate."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpimcast._peers.background import background

MBITS = 100_000
SPAN_NS = 10_000_000


@given(
    st.integers(2, 20),
    st.sampled_from((50_000, 300_000, 10**6)),
    st.integers(0, 2**64 - 1),
)
def test_load(nhosts: int, share_ppm: int, seed: int) -> None:
    """Each host sends its share, to others, from the beginning to the end."""
    hosts = np.arange(7, 7 + nhosts, dtype=np.uint32)
    messages, earliest_ns = background(hosts, share_ppm, MBITS, SPAN_NS, seed)
    assert (messages.sender != messages.receiver).all()
    assert set(messages.receiver.tolist()) <= set(hosts.tolist())
    assert (np.diff(earliest_ns.astype(np.int64)) >= 0).all()
    for host in hosts:
        sent = int(messages.nbytes[messages.sender == host].sum())
        exact = SPAN_NS * MBITS // 8000 * share_ppm // 10**6
        assert exact <= sent < exact + 2 * 65536
    again = background(hosts, share_ppm, MBITS, SPAN_NS, seed)
    assert np.array_equal(again.messages.receiver, messages.receiver)
    assert np.array_equal(again.earliest_ns, earliest_ns)


@pytest.mark.parametrize(("nhosts", "share_ppm"), [(1, 1000), (2, 0)])
def test_refusals(nhosts: int, share_ppm: int) -> None:
    """One host has nobody to send to, and no share is no background."""
    hosts = np.arange(nhosts, dtype=np.uint32)
    with pytest.raises(ValueError, match="cannot send"):
        background(hosts, share_ppm, MBITS, SPAN_NS, 1)
