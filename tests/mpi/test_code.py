# SPDX-License-Identifier: BSD-3-Clause
"""RELIABILITY=code mends what is lost; results are those of the MPI library."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from mpi4py import MPI

from mpimcast import ConfigError, Intracomm

Make = Callable[..., Intracomm]

WORLD = MPI.COMM_WORLD
LOSS = "loss=0.02,seed=3"


def gathered(comm: MPI.Intracomm, block: np.ndarray) -> np.ndarray:
    """Return the result of an Allgather."""
    result = np.empty(block.size * comm.size, block.dtype)
    comm.Allgather(block, result)
    return result


@pytest.mark.network
@pytest.mark.parametrize("code", ["32,4", "8,2", "4,1", "1,1", "16,0", "100,30"])
@pytest.mark.parametrize("nbytes", [400_001, 70_000])
def test_losses_are_mended(make_comm: Make, code: str, nbytes: int) -> None:
    """All bytes are right under loss, of operations one after the other."""
    rng = np.random.default_rng([WORLD.rank, nbytes])
    comm = make_comm(fault=LOSS, reliability="code", code=code)
    for _ in range(4):
        block = rng.integers(0, 256, nbytes, np.uint8)
        assert np.array_equal(gathered(comm, block), gathered(WORLD, block))
        whole = rng.integers(0, 256, nbytes, np.uint8)
        right = whole.copy()
        WORLD.Bcast(right, root=WORLD.size - 1)
        comm.Bcast(whole, root=WORLD.size - 1)
        assert np.array_equal(whole, right)
    stats = comm.stats()
    if comm.size > 1 and not code.endswith(",0"):
        assert WORLD.allreduce(stats["parity_sent"]) > 0
        assert WORLD.allreduce(stats["groups_mended"]) > 0
        assert "RELIABILITY=code" in comm.explain(nbytes).reason


@pytest.mark.network
@pytest.mark.parametrize("reliability", ["code", "auto"])
def test_coders(make_comm: Make, reliability: str) -> None:
    """Threads mend if CODER=on says so, and none does if it is off."""
    rng = np.random.default_rng([WORLD.rank, 5])
    fault = f"{LOSS},kind=multicast;delay_us=60000,kind=control"
    for coder in ("on", "off"):
        comm = make_comm(
            fault=LOSS if reliability == "code" else fault,
            reliability=reliability,
            code="8,4",
            coder=coder,
            eager_bytes=0,
        )
        for _ in range(6):
            block = rng.integers(0, 256, 400_001, np.uint8)
            assert np.array_equal(gathered(comm, block), gathered(WORLD, block))
        stats = comm.stats()
        assert stats["coder_mended"] <= stats["groups_mended"]
        if comm.size > 1:
            assert (WORLD.allreduce(stats["coder_mended"]) > 0) == (coder == "on")
            assert stats["coder_encoded"] == 0 or coder == "on"
            has = "a thread computes" in comm.explain(block.nbytes).reason
            assert has == (coder == "on")


@pytest.mark.network
def test_zero_copy_is_refused(make_comm: Make) -> None:
    """A code and zero-copy receive exclude each other."""
    with pytest.raises(ConfigError, match="RELIABILITY=code"):
        make_comm(zero_copy=True, reliability="code")


@pytest.mark.network
def test_auto_forecasts(make_comm: Make) -> None:
    """All ranks code the same operations, the first one among them.

    Later ones have parity where it pays, which is where repairs are slow. On loopback
    they are not, so control messages are held back.
    """
    comm = make_comm(reliability="auto", eager_bytes=0)
    rng = np.random.default_rng(WORLD.rank)
    block = rng.integers(0, 256, 200_001, np.uint8)
    right = gathered(WORLD, block)
    assert np.array_equal(gathered(comm, block), right)
    assert comm.stats()["coded_epochs"] == (comm.size > 1)
    if comm.size > 1:
        assert "RELIABILITY=auto" in comm.explain(block.nbytes).reason
    far = make_comm(
        reliability="auto",
        code="8,4",
        eager_bytes=0,
        fault=f"{LOSS},kind=multicast;delay_us=60000,kind=control",
    )
    for _ in range(8):
        assert np.array_equal(gathered(far, block), right)
    coded = WORLD.allgather(far.stats()["coded_epochs"])
    assert len(set(coded)) == 1
    if far.size > 1:
        assert coded[0] > 1
