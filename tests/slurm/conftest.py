# SPDX-License-Identifier: BSD-3-Clause
"""Fixtures for the two Slurms that the tests share."""

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
    """Skip the test if this machine lacks Slurm, another tool, or namespaces."""
    for tool in (*TOOLS, *cluster.TOOLS):
        support.require_tool(tool)
    if not list(Path("/").glob(cluster.PMIX)):
        support.skip_or_fail(f"/{cluster.PMIX} is missing, which libpmix-dev has")
    reason = host.why_unavailable()
    if reason:
        support.skip_or_fail(reason)


@pytest.fixture(scope="session")
def links(able: None) -> Iterator[Cluster]:  # noqa: ARG001 -- must come first
    """Yield four hosts on a switch, with links of the same rate."""
    with Cluster(4) as hosts:
        hosts.shape(cluster.RATE_MBIT)
        yield hosts


@pytest.fixture(scope="session")
def network(links: Cluster) -> cluster.Slurm:
    """Return a Slurm on the hosts of `links`, each of which has its own link."""
    return cluster.Slurm(links.head, links.hosts)


@pytest.fixture(scope="session")
def machine(able: None) -> Iterator[cluster.Slurm]:  # noqa: ARG001 -- must come first
    """Yield a Slurm on four hosts that share the network of one machine."""
    with cluster.one_network(4) as (head, hosts):
        yield cluster.Slurm(head, hosts)
