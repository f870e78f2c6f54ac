# SPDX-License-Identifier: BSD-3-Clause
"""Zero-copy receive in the simulator: chunks arrive directly in their places."""

from __future__ import annotations

import pytest
from simulated import MS, READ, run, total


@pytest.mark.parametrize("checksum", range(3))
@pytest.mark.parametrize("chains", [1, 2, 3, 4])
def test_chunks_come_to_their_places(chains: int, checksum: int) -> None:
    """Only chunks that take receives posted earlier are copied; none is evacuated.

    Some more chunks may arrive before all is known that a prediction needs.
    """
    nchunks, receives, nops = 200, 24, 3
    result = run(
        nranks=4,
        block_bytes=nchunks * 4096 - 5,
        nops=nops,
        chains=chains,
        subgroups=5,
        repair=READ,
        checksum=checksum,
        zero_copy=receives,
    )
    for rank, said in enumerate(result["ranks"]):
        heard = {owner % chains for owner in range(4) if owner != rank}
        staged = 2 * receives * len(heard)
        assert said["zero_copy_chunks"] >= nops * (3 * nchunks - staged)
        assert said["evacuated_chunks"] == said["lost_chunks"] == 0


def test_where_chains_share_a_subgroup_chunks_are_copied() -> None:
    """A queue that carries several senders, or control, predicts nothing."""
    result = run(nranks=4, block_bytes=200 * 4096, chains=4, subgroups=4, zero_copy=24)
    assert total(result, "zero_copy_chunks") == 0
    assert total(result, "evacuated_chunks") == 0


@pytest.mark.parametrize("loss", [0.01, 0.05, 0.2])
@pytest.mark.parametrize("repair", [0, 1, READ])
def test_mispredicted_chunks_are_evacuated(repair: int, loss: float) -> None:
    """After a loss chunks land in others' places; then predictions are right again.

    Places are checked when an operation completes, and until the end of the run.
    """
    result = run(
        nranks=4,
        block_bytes=400 * 4096,
        nops=4,
        subgroups=5,
        repair=repair,
        zero_copy=16,
        loss_ppm=round(loss * 1e6),
    )
    assert total(result, "evacuated_chunks") > 0
    assert total(result, "zero_copy_chunks") > 0
    assert total(result, "lost_chunks") > 0


def test_direct_placement_and_whatever_goes_wrong() -> None:
    """Results stay right under all faults, and if a rank gives up or dies."""
    faults = "loss=0.05,dup=0.05,reorder=0.1,corrupt=0.05,kind=multicast"
    ends = set()
    for seed in range(60):
        result = run(
            nranks=4,
            block_bytes=100 * 1000,
            chunk_bytes=1000,
            nops=3,
            pipelined=seed % 2,
            subgroups=5,
            repair=seed % 3,
            checksum=1 + seed % 2,
            zero_copy=4 + seed % 13,
            place_ns=seed % 5 * 3_000,
            jitter_ns=20_000,
            seed=seed,
            fault=f"{faults},seed={seed}",
            timeout_ns=2_000 * MS,
            **(
                {"cancelling_rank": 1, "cancel_ns": seed * 4_000}
                if seed % 4 == 1
                else {}
            ),
            **({"dead_rank": 2, "dead_ns": seed * 4_000} if seed % 4 == 3 else {}),
        )
        ends |= {rank["error"] for rank in result["ranks"]}
        assert total(result, "evacuated_chunks") > 0 or ends != {0}
    assert len(ends) > 1
