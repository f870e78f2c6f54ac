# SPDX-License-Identifier: BSD-3-Clause
"""A rank's last message of an operation is lost, and that rank has moved on."""

from __future__ import annotations

import json
import statistics
from pathlib import Path

import pytest
from job import Job

from bench.testbed.cluster import Cluster

NOPS = 5
# How long the sender of the lost message sleeps. The peer must return sooner.
ASLEEP_S = 10
pytestmark = pytest.mark.timeout(60)


def unasked_done(rank: int, epoch: int) -> str:
    """Return an nft expression for messages in which a rank says that it is done.

    It does not match the rank's answers to questions, and expects PROTECT=off.
    """
    # The keys are offset and length, in bits from the beginning of the UDP header.
    fields = {
        (128, 32): epoch,
        (160, 8): 0x80,  # a control message
        (224, 32): 0,  # no echoed stamp, which an answer has
        (256, 8): 1 | 2,  # the rank has entered and is done
    }
    matches = " ".join(f"@th,{at},{nbits} {v}" for (at, nbits), v in fields.items())
    return f"ip saddr 10.77.0.{10 + rank} ip protocol udp {matches}"


@pytest.mark.parametrize("sender_then", ["sleeps", "exits"])
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
    sender_then: str,
) -> None:
    """The peer asks again, and the sender's engine answers while its caller sleeps.

    In one case the peer's block is too large to keep a copy; in the other its neighbour
    may ask it for any block. So the peer returns only when it has heard that the ranks
    that may need its buffers are done. The sender's message that says so is lost. The
    sender then sleeps, or has finished and exits.
    """
    cluster.shape(None)
    sender, peer = nranks - 1, nranks - 2
    mishaps = [{"what": "meet", "rank": peer, "op": NOPS - 1}]
    if sender_then == "sleeps":
        late = {"what": "late", "rank": sender, "op": NOPS, "for_s": ASLEEP_S}
        mishaps.append(late)
    with Job(
        cluster,
        nranks,
        tmp_path,
        sizes=[nbytes],
        repeat=NOPS,
        settings={"repair": repair, "protect": "off"},
        mishaps=mishaps,
        free=False,
    ) as job:
        job.await_meeting(NOPS - 1)
        with cluster.losing([peer], traffic=unasked_done(sender, NOPS)) as loss:
            job.go(NOPS - 1)
            job.await_file(f"{peer}.json")
            sender_asleep = not (tmp_path / f"{sender}.json").exists()
            assert loss.dropped()[0] > 0
        if sender_then == "sleeps":
            assert sender_asleep, "the peer returned only after the sender woke up"
        else:
            job.results(20)
    outcome = json.loads((tmp_path / f"{peer}.json").read_text())
    assert not outcome["wrong"]
    *before_ms, last_ms = (1000 * seconds for seconds in outcome["seconds"])
    print(
        f"the last operation took {last_ms:.1f} ms, "
        f"those before {statistics.median(before_ms):.1f} ms"
    )
