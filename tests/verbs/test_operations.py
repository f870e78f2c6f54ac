# SPDX-License-Identifier: BSD-3-Clause
"""Every form of every collective works over RDMA devices."""

from __future__ import annotations

from exchange import FORMS, KINDS
from ranks import CHUNK_BYTES
from rounds import game, losing, play

from bench.guest.guest import Guest

NRANKS = 4


def test_operations(guest: Guest) -> None:
    """Results equal the MPI library's, and each lost chunk is fetched once."""
    sizes = [1, CHUNK_BYTES + 1, 100_000]
    both = {"sizes": sizes, "kinds": KINDS, "forms": FORMS}
    rounds = [{**both, "in_place": True}, {**both, **losing([1, 3], "loss 10%")}]
    ((lossless, lossy),) = play(guest, [game(NRANKS, rounds)])
    nops = len(KINDS) * len(FORMS) * len(sizes)
    assert lossless.total("epochs") == NRANKS * nops
    assert lossy.dropped > 0
    lossy.check()
    for outcome in (lossless, lossy):
        assert outcome.total("unicast_epochs") == 0, outcome
        assert outcome.total("failed_reads") == 0, outcome
        assert outcome.total("rx_corrupt_datagrams") == 0, outcome
