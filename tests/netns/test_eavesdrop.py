# SPDX-License-Identifier: BSD-3-Clause
"""What a host that only listens gets to see of a job's data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import datagrams
import pytest
from attack import BLOCK_BYTES, NRANKS, attacked, watch
from pattern import pattern

from bench.testbed.cluster import Cluster, address

# So many consecutive bytes are looked for, and must not be seen twice.
PIECE_BYTES = 16

# How many datagrams are listened to, which are those of several operations, and how
# often, until that is so.
NHEARD = 1500
ATTEMPTS = 20

# By how much each value of PROTECT makes datagrams longer.
SEAL_BYTES = {"off": 0, "authenticate": 24, "encrypt": 24}
MODES = ("off", pytest.param("authenticate", marks=pytest.mark.long), "encrypt")

pytestmark = pytest.mark.timeout(120)


@pytest.fixture(scope="module")
def cluster(able: None) -> Iterator[Cluster]:  # noqa: ARG001 -- must come first
    """Yield hosts of the job and, as the last one, the listener's.

    They are not those of other tests, since the switch takes the listener for a router.
    """
    with Cluster(NRANKS + 1) as cluster:
        yield cluster


def pieces(text: bytes, step: int) -> set[bytes]:
    """Return the pieces that begin at each multiple of `step`."""
    last = len(text) - PIECE_BYTES
    return {text[at : at + PIECE_BYTES] for at in range(0, last + 1, step)}


def chunks_of(heard: Sequence[bytes]) -> dict[tuple[int, int, int], bytes]:
    """Return the chunks among datagrams by channel, epoch and index."""
    chunks = {}
    for each in heard:
        header = datagrams.peek(each)
        if header.index < datagrams.REPAIR:
            chunks[header.channel, header.epoch, header.index] = each
    return chunks


def are_several(chunks: dict[tuple[int, int, int], bytes]) -> bool:
    """Return whether the same chunk of several operations is there, often enough."""
    seen = [(channel, index) for channel, _, index in chunks]
    return len(seen) - len(set(seen)) > NHEARD // 3


@pytest.mark.parametrize("mode", MODES)
def test_eavesdrop(cluster: Cluster, tmp_path: Path, mode: str, seed: int) -> None:
    """With encryption nothing of the payload is seen, and nothing is seen twice.

    Every operation has the same data. Without encryption a listener sees all of them,
    and sees them again. The doctor says whether the job is protected, and accuses none
    of its ranks.
    """
    with attacked(cluster, tmp_path, seed, protect=mode, repeats=True) as (job, host):
        for _ in range(ATTEMPTS):
            chunks = chunks_of(host.hear(NHEARD))
            if are_several(chunks):
                break
        assert are_several(chunks)
        _, _, document = watch(cluster.hosts[0])
        job.stop()
    (seen_job,) = document["security"]["jobs"]
    assert seen_job["protected"] == (mode != "off")
    assert seen_job["ranks"] == [address(rank) for rank in range(NRANKS)]
    assert document["security"]["strangers"] == []
    around_bytes = datagrams.HEADER_BYTES + SEAL_BYTES[mode]
    known = set().union(
        *(pieces(pattern(rank, 0, BLOCK_BYTES).tobytes(), 1) for rank in range(NRANKS))
    )
    assert len(known) > BLOCK_BYTES
    found = repeated = count = 0
    seen: set[bytes] = set()
    for each in chunks.values():
        assert datagrams.seal_bytes(each) == SEAL_BYTES[mode]
        found += len(known & pieces(each, 1))
        body = pieces(each[around_bytes:], PIECE_BYTES)
        seal = pieces(each[datagrams.HEADER_BYTES : around_bytes], PIECE_BYTES)
        count += len(body | seal)
        repeated += len(seen & (body | seal))
        seen |= body | seal
    print(f"{mode}: {len(chunks)} chunks, {count} pieces, {found=}, {repeated=}")
    if mode == "encrypt":
        assert (found, repeated) == (0, 0)
    else:
        assert found > count
        assert repeated > count // 3
