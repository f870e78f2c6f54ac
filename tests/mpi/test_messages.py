# SPDX-License-Identifier: BSD-3-Clause
"""The messages that the benchmark measures over long links arrive as they were sent."""

from __future__ import annotations

import pytest
from mpi4py import MPI

from bench.jobs.messages import SENDER, PostedMessage, Sdr, messages
from bench.jobs.payload import MESSAGES, POSTED

pytestmark = pytest.mark.network


@pytest.mark.parametrize("kind", MESSAGES)
def test_messages(mpi_comm: MPI.Intracomm, kind: str) -> None:
    """Each message arrives whole, and none is left over at the end."""
    pair = mpi_comm.Split(min(mpi_comm.rank // 2, 1))
    if mpi_comm.rank < 2 <= pair.size:
        channel = Sdr(pair)
        work = messages(kind, 100_001, pair, channel)
        assert isinstance(work, PostedMessage) == (kind == POSTED)
        for number in range(5):
            work.turn_to(number, 0)
            work.fill()
            pair.Barrier()
            assert (work.run(channel) is None) == (pair.rank != SENDER)
            assert work.wrong_bytes() == 0
        work.finish(channel)
        channel.close()
    pair.Free()
