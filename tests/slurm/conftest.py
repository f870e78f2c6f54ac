# SPDX-License-Identifier: BSD-3-Clause
"""Fixtures: the Slurms that the tests share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import cluster
import pytest
import support

from bench.testbed import host
from bench.testbed.cluster import Cluster

TOOLS = ("ip", "tc", "nft", "unshare", "nsenter", "sysctl")


@pytest.fixture(scope="session")
def able() -> None:
    """Skip tests where Slurm or namespaces are missing."""
    for tool in (*TOOLS, *cluster.TOOLS):
        support.require_tool(tool)
    if not list(Path("/").glob(cluster.PMIX)):
        support.absent(f"/{cluster.PMIX} is missing, which libpmix-dev has")
    obstacle = host.obstacle()
    if obstacle:
        support.absent(obstacle)


@pytest.fixture(scope="session")
def links(able: None) -> Iterator[Cluster]:  # noqa: ARG001 -- comes first
    """Return four hosts on a switch, with links of the same rate."""
    with Cluster(4) as hosts:
        hosts.shape(cluster.RATE_MBIT)
        yield hosts


@pytest.fixture(scope="session")
def network(links: Cluster) -> cluster.Slurm:
    """Return a Slurm whose nodes have links of their own."""
    return cluster.Slurm(links.head, links.hosts)


@pytest.fixture(scope="session")
def machine(able: None) -> Iterator[cluster.Slurm]:  # noqa: ARG001 -- comes first
    """Return a Slurm on four nodes that share the network of one machine."""
    with cluster.one_network(4) as (head, hosts):
        yield cluster.Slurm(head, hosts)
