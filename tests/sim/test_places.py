# SPDX-License-Identifier: BSD-3-Clause
"""Zero-copy receive in the simulator: the devices put chunks in their places."""

from __future__ import annotations

import pytest
from simulated import MS, POLICIES, READ, run, total


@pytest.mark.parametrize("checksum", range(3))
@pytest.mark.parametrize("chains", [1, 2, 3, 4])
def test_most_chunks_are_not_copied(chains: int, checksum: int) -> None:
    """Without loss, no chunk is put in another's place, and few chunks are copied.

    The copied chunks take receives that were posted before the operation, or arrive
    before the rank knows enough to predict which chunk comes next.
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
    for index, rank in enumerate(result["ranks"]):
        chains_heard = {owner % chains for owner in range(4) if owner != index}
        ncopied_most = 2 * receives * len(chains_heard)
        assert rank["zero_copy_chunks"] >= nops * (3 * nchunks - ncopied_most)
        assert rank["evacuated_chunks"] == rank["lost_chunks"] == 0


def test_chunks_of_a_shared_subgroup_are_copied() -> None:
    """Chunks are copied if a subgroup carries several chains, or control messages.

    In such a subgroup a rank cannot predict which chunk comes next.
    """
    result = run(nranks=4, block_bytes=200 * 4096, chains=4, subgroups=4, zero_copy=24)
    assert total(result, "zero_copy_chunks") == 0
    assert total(result, "evacuated_chunks") == 0


@pytest.mark.parametrize("loss", [0.01, 0.05, 0.2])
@pytest.mark.parametrize("repair", POLICIES)
def test_chunks_in_wrong_places_are_evacuated(repair: int, loss: float) -> None:
    """After a loss, chunks land in the places of others, and are copied out of them.

    Later chunks land in their own places again. The simulator checks the places when an
    operation completes, and until the end of the run.
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


def test_direct_placement_under_faults() -> None:
    """Results stay right under all faults, even if a rank cancels or dies.

    Rank 1 cancels in one run of four, and rank 2 dies in another.
    """
    faults = "loss=0.05,dup=0.05,reorder=0.1,corrupt=0.05,kind=multicast"
    errors = set()
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
        errors |= {rank["error"] for rank in result["ranks"]}
        assert total(result, "evacuated_chunks") > 0 or errors != {0}
    assert len(errors) > 1
