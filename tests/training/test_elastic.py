# SPDX-License-Identifier: BSD-3-Clause
"""torchrun starts the ranks anew when more hosts join; they launch a larger job."""

from __future__ import annotations

import os
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO, cast

import processes
import pytest
from support import BIN, MPICH_BIN, torch_variables

LIMIT_S = 120
NLOCAL, NRANKS = 2, 4

# Otherwise an agent of torch 2.13 that joins waits for the address of the first agent's
# store, which that one has told in an earlier rendezvous alone.
OWN_STORES = {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
pytestmark = [pytest.mark.timeout(LIMIT_S + 60), pytest.mark.long]

# The ranks of the small job go on until torchrun ends them.
PROGRAM = f"""
import torch
import torch.distributed as dist
import mpimcast.torch

torch.set_num_threads(1)
dist.init_process_group("mpimcast")
rank, nranks = dist.get_rank(), dist.get_world_size()
place = torch.zeros(nranks)
dist.all_gather_single(place, torch.full((1,), float(rank)))
assert place.eq(torch.arange(nranks)).all()
print(f"rank {{rank}} of {{nranks}}", flush=True)
while nranks < {NRANKS}:
    dist.barrier()
dist.destroy_process_group()
"""


@pytest.fixture
def variables(tmp_path: Path) -> Iterator[dict[str, str]]:
    """Yield the variables of a job, of which no process must be left in the end."""
    own = {"TEST_FOLDER": str(tmp_path), "MPIMCAST_TRANSPORT": "udp"}
    yield {**torch_variables(), **OWN_STORES, **own}
    processes.await_end("TEST_FOLDER", str(tmp_path))


def free_port() -> int:
    """Return a TCP port that nobody listens on."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        return int(unused.getsockname()[1])


def start(
    bin_folder: Path, program: Path, port: int, variables: dict[str, str]
) -> subprocess.Popen[str]:
    """Start an agent of torchrun's, as on one of up to two hosts."""
    return subprocess.Popen(
        [
            *(bin_folder / "python", "-m", "torch.distributed.run"),
            *("--nnodes=1:2", f"--nproc-per-node={NLOCAL}", "--rdzv-backend=c10d"),
            *(f"--rdzv-endpoint=127.0.0.1:{port}", "--rdzv-id=1"),
            *("--rdzv-conf=last_call_timeout=1", program),
        ],
        env={**os.environ, **variables},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


@pytest.mark.parametrize("bin_folder", [BIN, MPICH_BIN], ids=["openmpi", "mpich"])
def test_hosts_join(
    bin_folder: Path, tmp_path: Path, variables: dict[str, str]
) -> None:
    """All ranks of the larger job gather from all."""
    program, port = tmp_path / "program.py", free_port()
    program.write_text(PROGRAM)
    first = start(bin_folder, program, port, variables)
    agents = [first]
    timer = threading.Timer(LIMIT_S, lambda: [each.terminate() for each in agents])
    timer.start()
    try:
        said, missing = "", set(range(NLOCAL))
        for line in cast("TextIO", first.stdout):
            said += line
            missing -= {rank for rank in missing if f"rank {rank} of 2" in line}
            if not missing:
                break
        agents.append(start(bin_folder, program, port, variables))
        for agent in agents:
            said += agent.communicate()[0]
    finally:
        timer.cancel()
        for agent in agents:
            agent.terminate()
    assert [agent.returncode for agent in agents] == [0, 0], said
    for rank in range(NRANKS):
        assert f"rank {rank} of {NRANKS}" in said
