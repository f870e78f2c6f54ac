# SPDX-License-Identifier: BSD-3-Clause
"""The last message of an operation is lost after its sender has moved on."""

from __future__ import annotations

import json
import statistics
from pathlib import Path

import pytest
from job import Job

from bench.testbed.cluster import Cluster

NOPS = 5
ASLEEP_S = 10
pytestmark = pytest.mark.timeout(60)


def unasked_done(rank: int, epoch: int) -> str:
    """Return the nft expression for a rank's unasked messages that it is done.

    Messages that answer another rank's question do not match.
    """
    fields = {
        (128, 32): epoch,
        (160, 8): 0x80,  # a control message
        (224, 32): 0,  # which echoes no stamp
        (256, 8): 1 | 2,  # from a rank that has entered and is done
    }
    # nft counts offsets in bits from the beginning of the UDP header.
    said = " ".join(f"@th,{at},{nbits} {v}" for (at, nbits), v in fields.items())
    return f"ip saddr 10.77.0.{10 + rank} ip protocol udp {said}"


@pytest.mark.parametrize("then", ["sleeps", "exits"])
@pytest.mark.parametrize(
    ("nranks", "repair", "nbytes"), [(2, "nak", 2 << 20), (4, "neighbour", 100_000)]
)
def test_last_done_lost(
    cluster: Cluster,
    tmp_path: Path,
    *,
    nranks: int,
    repair: str,
    nbytes: int,
    then: str,
) -> None:
    """The sender's engine answers, so its peer need not wait for the sender's caller.

    The peer keeps no copy of blocks as large as these, or its neighbour may ask for
    them, so it returns only when it hears that the ranks that may need them are done.
    """
    cluster.shape(None)
    sender, peer = nranks - 1, nranks - 2
    mishaps = [{"what": "meet", "rank": peer, "op": NOPS - 1}]
    if then == "sleeps":
        late = {"what": "late", "rank": sender, "op": NOPS, "for_s": ASLEEP_S}
        mishaps.append(late)
    with Job(
        cluster,
        nranks,
        tmp_path,
        sizes=[nbytes],
        repeat=NOPS,
        settings={"repair": repair},
        mishaps=mishaps,
        free=False,
    ) as job:
        job.await_meeting(NOPS - 1)
        with cluster.losing([peer], traffic=unasked_done(sender, NOPS)) as loss:
            job.go(NOPS - 1)
            job.await_file(f"{peer}.json")
            slept_on = not (tmp_path / f"{sender}.json").exists()
            assert loss.dropped()[0] > 0
        if then == "sleeps":
            assert slept_on, "the peer returned only after the sender woke up"
        else:
            job.results(20)
    seen = json.loads((tmp_path / f"{peer}.json").read_text())
    assert not seen["wrong"]
    *before, last = (1000 * seconds for seconds in seen["seconds"])
    print(f"the last one took {last:.1f} ms, before {statistics.median(before):.1f}")
