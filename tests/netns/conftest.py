# SPDX-License-Identifier: BSD-3-Clause
"""Fixtures for the cluster that the tests share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import support

from bench.testbed import host
from bench.testbed.cluster import Cluster

TOOLS = ("ip", "tc", "nft", "unshare", "nsenter", "sysctl")
NHOSTS = 9  # eight for ranks, and one that takes part in no job


@pytest.fixture(scope="session")
def able() -> None:
    """Skip the test if this machine lacks a tool or does not allow namespaces."""
    for tool in TOOLS:
        support.require_tool(tool)
    reason = host.why_unavailable()
    if reason:
        support.skip_or_fail(reason)


@pytest.fixture(scope="session")
def hosts(able: None) -> Iterator[Cluster]:  # noqa: ARG001 -- must come first
    """Yield a cluster of hosts on one switch, for all tests of the session."""
    with Cluster(NHOSTS) as cluster:
        yield cluster


@pytest.fixture
def cluster(hosts: Cluster) -> Cluster:
    """Reset the shared cluster's links to 200 Mbit/s, and return the cluster."""
    hosts.shape(200)
    return hosts
