# SPDX-License-Identifier: BSD-3-Clause
"""Fixtures: the clusters that the tests share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import support

from bench.testbed import host
from bench.testbed.cluster import Cluster

TOOLS = ("ip", "tc", "nft", "unshare", "nsenter", "sysctl")
NHOSTS = 9  # eight for ranks and one that is in no job


@pytest.fixture(scope="session")
def able() -> None:
    """Skip tests that need namespaces on machines that do not allow them."""
    for tool in TOOLS:
        support.require_tool(tool)
    obstacle = host.obstacle()
    if obstacle:
        support.absent(obstacle)


@pytest.fixture(scope="session")
def hosts(able: None) -> Iterator[Cluster]:  # noqa: ARG001 -- comes first
    """Return hosts on one switch."""
    with Cluster(NHOSTS) as cluster:
        yield cluster


@pytest.fixture
def cluster(hosts: Cluster) -> Cluster:
    """Return hosts on one switch, 200 Mbit/s each."""
    hosts.shape(200)
    return hosts
