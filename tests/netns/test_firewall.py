# SPDX-License-Identifier: BSD-3-Clause
"""GROUP and PORTS determine all that a firewall has to let through."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from job import LAUNCHERS, OPENMPI, Job, ours

from bench.testbed.cluster import Cluster
from bench.testbed.launcher import Launcher

NRANKS = 5
BLOCK = 256 << 10
GROUPS = "239.77.8.0-239.77.8.3"
PORTS = "31000-31009"
SETTINGS = {"group": GROUPS, "ports": PORTS, "subgroups": 2}

# nft expressions for any other group, destination port and source port.
FORBIDDEN = (
    f"ip protocol udp ip daddr 224.0.0.0/4 ip daddr != {GROUPS}",
    f"udp dport != {PORTS}",
    f"udp sport != {PORTS}",
)

pytestmark = pytest.mark.timeout(120)


def gather(
    cluster: Cluster,
    folder: Path,
    settings: Mapping[str, object],
    *,
    launcher: Launcher = OPENMPI,
    failing: bool = False,
) -> tuple[dict[int, dict[str, object]], int]:
    """Run a job behind the firewall; return results and the number of drops."""
    hosts = range(NRANKS)
    with (
        cluster.losing(hosts, traffic=FORBIDDEN[0]) as groups,
        cluster.losing(hosts, traffic=FORBIDDEN[1]) as to_ports,
        cluster.losing(hosts, traffic=FORBIDDEN[2]) as from_ports,
        Job(
            cluster,
            NRANKS,
            folder,
            launcher=launcher,
            settings=settings,
            sizes=[BLOCK, 5000],
            repeat=6,
            ncomms=2,
        ) as job,
    ):
        results = job.results(60, failing=failing)
        refused = [each.dropped()[0] for each in (groups, to_ports, from_ports)]
    return results, sum(refused)


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_within(cluster: Cluster, tmp_path: Path, launcher: Launcher) -> None:
    """Data, control and repairs all pass, on two communicators and despite loss."""
    cluster.shape(100, burst_bytes=4000)
    with cluster.losing(range(NRANKS), 0.02, "multicast") as loss:
        results, nrefused = gather(cluster, tmp_path, SETTINGS, launcher=launcher)
        assert loss.dropped()[0] > 0
    stats = ours(results)
    assert nrefused == 0
    assert stats["rx_repaired_chunks"] > 0
    assert stats["unicast_epochs"] == 0
    explained = {str(result["explained"]) for result in results.values()}
    assert all(each.startswith("udp: UDP multicast") for each in explained)


def test_without(cluster: Cluster, tmp_path: Path) -> None:
    """Without the settings the firewall refuses datagrams, and every rank fails."""
    results, nrefused = gather(cluster, tmp_path, {}, failing=True)
    assert nrefused > 0
    for result in results.values():
        assert result["errors"]
