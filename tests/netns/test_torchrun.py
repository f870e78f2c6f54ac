# SPDX-License-Identifier: BSD-3-Clause
"""Ranks that torchrun starts on several hosts, which have no ssh, take part in MPI."""

from __future__ import annotations

import os
import subprocess
import threading
from pathlib import Path

import pytest
import support
from job import LAUNCHERS

from bench.testbed.cluster import Cluster, address
from bench.testbed.launcher import Launcher

PROGRAM = support.ROOT / "tests/training/torchrun_rank.py"
NHOSTS, NLOCAL, PORT = 3, 2, 29_400
LIMIT_S = 120
pytestmark = pytest.mark.timeout(LIMIT_S + 60)


@pytest.mark.long
@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_several_hosts(cluster: Cluster, tmp_path: Path, launcher: Launcher) -> None:
    """The ranks of all hosts gather and reduce together."""
    torchrun = [
        *(launcher.environment / "python", "-m", "torch.distributed.run"),
        *("--nnodes", NHOSTS, "--nproc-per-node", NLOCAL),
        *("--master-addr", address(0), "--master-port", PORT),
    ]
    variables = {
        **support.torch_variables(),
        "GLOO_SOCKET_IFNAME": "eth0",
        "MPIMCAST_TRANSPORT": "udp",
        "OMPI_MCA_btl_tcp_if_include": "eth0",
        "UCX_NET_DEVICES": "eth0",
    }

    def end_processes() -> None:
        for host in cluster.hosts[:NHOSTS]:
            host.end_processes()

    # Launchers name files after process numbers, which are the same on all hosts.
    folders = [tmp_path / str(number) for number in range(NHOSTS)]
    for folder in folders:
        folder.mkdir()
    agents = [
        subprocess.Popen(
            [*host.enter("/"), *map(str, [*torchrun, "--node-rank", number, PROGRAM])],
            env={**os.environ, **variables, "TMPDIR": str(folders[number])},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for number, host in enumerate(cluster.hosts[:NHOSTS])
    ]
    timer = threading.Timer(LIMIT_S, end_processes)
    timer.start()
    said = [agent.communicate()[0] for agent in agents]
    timer.cancel()
    end_processes()
    for number, (agent, text) in enumerate(zip(agents, said, strict=True)):
        assert agent.returncode == 0, text
        for rank in range(number * NLOCAL, (number + 1) * NLOCAL):
            assert f"rank {rank} of {NHOSTS * NLOCAL}: " in text
