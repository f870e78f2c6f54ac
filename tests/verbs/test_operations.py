# SPDX-License-Identifier: BSD-3-Clause
"""Every operation works over RDMA devices, in every form."""

from __future__ import annotations

from exchange import FORMS, KINDS
from ranks import CHUNK
from rounds import game, losing, play

from bench.guest.guest import Guest

NRANKS = 4


def test_operations(guest: Guest) -> None:
    """Results equal the MPI library's, and lost chunks are fetched once."""
    each = {"sizes": [1, CHUNK + 1, 100_000], "kinds": KINDS, "forms": FORMS}
    lossless = {**each, "in_place": True}
    lossy = {**each, **losing([1, 3], "loss 10%")}
    ((sound, outcome),) = play(guest, [game(NRANKS, [lossless, lossy])])
    noperations = len(KINDS) * len(FORMS) * 3
    assert sound.total("epochs") == NRANKS * noperations
    assert outcome.dropped > 0
    outcome.check()
    for seen in (sound, outcome):
        assert seen.total("unicast_epochs") == 0, seen
        assert seen.total("failed_reads") == 0, seen
        assert seen.total("rx_corrupt_datagrams") == 0, seen
