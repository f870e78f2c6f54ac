# SPDX-License-Identifier: BSD-3-Clause
"""A firewall may drop everything except the groups and ports of GROUP and PORTS."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from job import LAUNCHERS, OPENMPI, Job, summed_stats

from bench.testbed.cluster import Cluster
from bench.testbed.launcher import Launcher

NRANKS = 5
BLOCK_BYTES = 256 << 10
GROUPS = "239.77.8.0-239.77.8.3"
PORTS = "31000-31009"
SETTINGS = {"group": GROUPS, "ports": PORTS, "subgroups": 2}

# The nft expressions for what the firewall drops: any other group, destination port or
# source port.
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
    """Run a job on two communicators behind the firewall.

    Return the ranks' results, and how many datagrams the firewall has dropped.
    """
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
            sizes=[BLOCK_BYTES, 5000],
            repeat=6,
            ncomms=2,
        ) as job,
    ):
        results = job.results(60, failing=failing)
        refused = [each.dropped()[0] for each in (groups, to_ports, from_ports)]
    return results, sum(refused)


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_a_job_in_the_ranges(
    cluster: Cluster, tmp_path: Path, launcher: Launcher
) -> None:
    """With GROUP and PORTS set, the firewall drops no datagram of a job.

    Neither data nor control messages nor repairs are dropped.
    """
    cluster.shape(100, burst_bytes=4000)
    with cluster.losing(range(NRANKS), 0.02, "multicast") as loss:
        results, nrefused = gather(cluster, tmp_path, SETTINGS, launcher=launcher)
        assert loss.dropped()[0] > 0
    stats = summed_stats(results)
    assert nrefused == 0
    assert stats["rx_repaired_chunks"] > 0
    assert stats["unicast_epochs"] == 0
    explained = {str(result["explained"]) for result in results.values()}
    assert all(each.startswith("udp: UDP multicast") for each in explained)


def test_a_job_without_the_settings(cluster: Cluster, tmp_path: Path) -> None:
    """Without GROUP and PORTS, the firewall drops datagrams, and every rank fails."""
    results, nrefused = gather(cluster, tmp_path, {}, failing=True)
    assert nrefused > 0
    for result in results.values():
        assert result["errors"]
