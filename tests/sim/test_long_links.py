# SPDX-License-Identifier: BSD-3-Clause
"""Long links in the simulator: nothing is repaired twice, and windows fill the link."""

from __future__ import annotations

import pytest
from simulated import MS, run, total

ALLGATHER, BCAST = 1, 3
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


@pytest.mark.parametrize(("nranks", "kind"), [(2, BCAST), (3, ALLGATHER)])
def test_windows_widen_by_themselves(nranks: int, kind: int) -> None:
    """From the tenth operation on, the learnt window is as good as one of two products.

    It begins at 384 KiB, with which such operations take several times as long.
    """
    trip_ns = 25 * MS
    products_bytes = 2 * product_bytes(trip_ns)

    def time_ns(nops: int, **spec: int) -> int:
        result = run(
            nranks=nranks,
            nops=nops,
            kind=kind,
            root=0,
            block_bytes=2 << 20,
            chunk_bytes=1456,
            eager_bytes=0,
            buffer_bytes=4 * products_bytes,
            queue_bytes=4 * products_bytes,
            send_bytes=4 * products_bytes,
            link_mbits=LINK_MBITS,
            latency_ns=trip_ns // 4,
            timeout_ns=20_000 * MS,
            seed=1,
            **spec,
        )
        ended_ns: int = result["time_ns"]
        return ended_ns

    learnt_ns = time_ns(20, adaptive=1) - time_ns(10, adaptive=1)
    ample_ns = time_ns(10, window_bytes=products_bytes)
    narrow_ns = time_ns(10, window_bytes=384 << 10)
    assert learnt_ns < 1.1 * ample_ns
    assert narrow_ns > 2 * ample_ns
