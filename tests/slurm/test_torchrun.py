# SPDX-License-Identifier: BSD-3-Clause
"""Ranks that torchrun starts within a step of Slurm's take part in MPI."""

from __future__ import annotations

import re
import shlex

import pytest
from cluster import Slurm
from support import BIN, MPICH_BIN, ROOT, torch_variables

PROGRAM = ROOT / "tests/training/torchrun_rank.py"
NNODES, NLOCAL, PORT = 3, 2, 29_400


@pytest.mark.long
@pytest.mark.timeout(150)
@pytest.mark.parametrize("bin_folder", [BIN, MPICH_BIN], ids=["openmpi", "mpich"])
@pytest.mark.parametrize("manager", ["none", "pmix", "pmi2"])
def test_step(network: Slurm, bin_folder: str, manager: str) -> None:
    """Neither Slurm's variables nor its process managers get in the launcher's way."""
    torchrun = shlex.join(
        map(
            str,
            [
                *(f"{bin_folder}/python", "-m", "torch.distributed.run"),
                *("--nnodes", NNODES, "--nproc-per-node", NLOCAL),
            ],
        )
    )
    # The first host of the step, as users write it; there is no DNS but /etc/hosts.
    first = "$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n 1)"
    script = (
        f"exec {torchrun} --node-rank $SLURM_NODEID --master-addr {first} "
        f"--master-port {PORT} {PROGRAM}"
    )
    said = network.run(
        *("srun", f"--nodes={NNODES}", "--ntasks-per-node=1", f"--mpi={manager}"),
        *("sh", "-c", script),
        variables={
            **torch_variables(),
            "GLOO_SOCKET_IFNAME": "eth0",
            "MPIMCAST_TRANSPORT": "udp",
            "OMPI_MCA_btl_tcp_if_include": "eth0",
            "UCX_NET_DEVICES": "eth0",
            "TMPDIR": "/dev/shm",  # noqa: S108 -- each node's own
        },
    )
    nranks = NNODES * NLOCAL
    # Two operations, which the leader of each node carries out between nodes, too.
    found = sorted(re.findall(rf"rank (\d+) of {nranks}: [24]$", said, re.MULTILINE))
    assert found == [str(rank) for rank in range(nranks)], said
