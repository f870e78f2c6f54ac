# SPDX-License-Identifier: BSD-3-Clause
"""Long links in the simulator: nothing is repaired twice, and windows fill the link."""

from __future__ import annotations

import pytest
from simulated import MS, run, total

BCAST = 3
LINK_MBITS = 1000
NBYTES = 4 << 20
NOPS = 3


def product_bytes(trip_ns: int) -> int:
    """Return the product of the link's bandwidth and a round trip."""
    return LINK_MBITS * trip_ns // 8000


@pytest.mark.parametrize("loss_ppm", [0, 100, 1000, 10_000])
@pytest.mark.parametrize("trip_ms", [1, 25, 50, 100])
def test_each_loss_is_repaired_once(trip_ms: int, loss_ppm: int) -> None:
    """Two ranks with a window of two products request no chunk before it can be here.

    A chunk may come twice for each hundred that were lost, at the most, and for each
    operation. Without loss there is none, and an operation takes its link's time, the
    entry, the way of the last chunk, and the release.
    """
    trip_ns = trip_ms * MS
    window_bytes = max(1_000_000, 2 * product_bytes(trip_ns))
    result = run(
        nranks=2,
        nops=NOPS,
        kind=BCAST,
        root=0,
        block_bytes=NBYTES,
        chunk_bytes=1456,
        eager_bytes=0,
        window_bytes=window_bytes,
        buffer_bytes=2 * window_bytes,
        queue_bytes=2 * window_bytes,
        send_bytes=2 * window_bytes,
        link_mbits=LINK_MBITS,
        latency_ns=trip_ns // 4,
        loss_ppm=loss_ppm,
        timeout_ns=20_000 * MS,
        seed=trip_ms + loss_ppm,
    )
    lost, twice = total(result, "lost_chunks"), total(result, "duplicate_chunks")
    assert lost > 0 or loss_ppm < 1000
    assert twice <= NOPS + lost // 100
    if loss_ppm == 0:
        assert twice == 0
        link_ns = NBYTES * 8000 // LINK_MBITS
        assert result["time_ns"] < NOPS * (1.1 * link_ns + 2 * trip_ns)
