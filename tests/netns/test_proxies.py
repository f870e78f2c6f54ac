# SPDX-License-Identifier: BSD-3-Clause
"""PROGRESS=proxy between hosts of several ranks: each host has one proxy, or none.

Ranks on hosts 0 and 1 have a proxy; those on host 2 have none. A user has started the
proxy of host 0 by hand, and the first rank on host 1 starts that one's.
"""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import support
from exchange import FORMS, KINDS
from job import MPICH, OPENMPI, SETTINGS, Job, Rounds
from waiting import await_state

from bench.testbed.cluster import Cluster
from bench.testbed.host import Host
from bench.testbed.launcher import Launcher

LIMIT_S = 20
PROXY = "mpimcast proxy"

# The number of each rank's host, and the ranks that have a proxy.
PLACES = [0, 1, 1, 0, 2, 1, 2]
PLACE_KILLED = 1
PROXIED = [rank for rank, place in enumerate(PLACES) if place < 2]

TIMEOUT_S = 3
OP = 5  # the operation before which a proxy is killed, or soon after

pytestmark = pytest.mark.timeout(120)


def ways(brief: Sequence[str]) -> pytest.MarkDecorator:
    """Run a test under each MPI library, with and without memory that ranks share.

    Those that are not `brief` need --long.
    """
    every = {
        f"{launcher.name}-{node_bytes}": (launcher, node_bytes)
        for launcher in (OPENMPI, MPICH)
        for node_bytes in ("64M", 0)
    }
    return pytest.mark.parametrize(
        ("launcher", "node_bytes"),
        [
            pytest.param(*way, id=name, marks=() if name in brief else pytest.mark.long)
            for name, way in every.items()
        ],
    )


@contextlib.contextmanager
def listening(host: Host) -> Iterator[subprocess.Popen[str]]:
    """Yield a proxy that a user has started on a host, and that listens."""
    command = [support.BIN / "python", "-m", "mpimcast", "proxy"]
    with subprocess.Popen(
        [*host.enter(), *command], stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stderr is not None
            assert process.stderr.readline().endswith("listens for ranks\n")
            yield process
        finally:
            host.end_processes()


def proxies_of(host: Host) -> list[int]:
    """Return the proxies on a host, by their numbers of processes there."""
    said = host.run("sh", "-c", f"pgrep -f '[m]{PROXY[1:]}' || :")
    return list(map(int, said.split()))


def await_nothing_left(host: Host, pid: int) -> None:
    """Wait until a proxy has given up all that it had of ranks: it only listens.

    Groups of ranks that have gone are left some seconds later.
    """

    def held() -> tuple[int, int, int]:
        sockets = host.run("ls", "-l", f"/proc/{pid}/fd").count("socket:")
        memory = host.run("cat", f"/proc/{pid}/maps").count("/memfd:")
        return sockets, memory, len(host.run("ls", f"/proc/{pid}/task").split())

    # A thread awaits signals, and one awaits ranks.
    await_state(held, lambda seen: seen == (1, 0, 2), LIMIT_S)


@ways(brief=["openmpi-64M", "mpich-0"])
def test_operations(
    cluster: Cluster, tmp_path: Path, launcher: Launcher, node_bytes: object
) -> None:
    """Results equal the MPI library's, while a host loses some; a host has one proxy.

    With NODE_BYTES=0 each rank attaches to the proxy itself.
    """
    cluster.shape(200, burst_bytes=4000)
    game = {
        "nranks": len(PLACES),
        "nthreads": 1,
        "proxied": PROXIED,
        "settings": {**SETTINGS, "node_bytes": node_bytes},
        "rounds": [
            {
                "sizes": [1, 1457, 100_000],
                "in_place": True,
                "kinds": KINDS,
                "forms": FORMS,
            },
            {"sizes": [1457, 100_000], "kinds": KINDS, "place": "owned"},
        ],
    }
    with (
        cluster.losing([1], 0.1, "multicast") as loss,
        listening(cluster.hosts[0]) as by_hand,
        Rounds(cluster, PLACES, tmp_path, launcher=launcher, games=[game]) as job,
    ):
        results = job.results(90)
        assert loss.dropped()[0] > 0
        assert [len(proxies_of(host)) for host in cluster.hosts[:3]] == [1, 1, 0]
        cluster.hosts[0].run("pkill", "-TERM", "-f", PROXY)
        assert by_hand.wait(LIMIT_S) == 0
    for result in results.values():
        ((first, _),) = result["games"]
        assert "proxy 0 on ranks" in first["explained"], first["explained"]
        assert "host on rank" in first["explained"], first["explained"]
        assert first["stats"]["epochs"] + first["stats"]["node_operations"] > 0
    repaired = [
        sum(each["stats"]["rx_repaired_chunks"] for each in result["games"][0])
        for result in results.values()
    ]
    assert sum(repaired) > 0


@ways(brief=["openmpi-64M"])
def test_a_proxy_that_is_killed(
    cluster: Cluster, tmp_path: Path, launcher: Launcher, node_bytes: object
) -> None:
    """The ranks of all hosts fail within TIMEOUT, and then use another proxy.

    That proxy and the one of the other host have nothing left of them in the end.
    """
    with Job(
        cluster,
        PLACES,
        tmp_path,
        launcher=launcher,
        sizes=[512 << 10],
        # More than could end before a proxy is killed.
        repeat=3000,
        proxied=PROXIED,
        open_first=True,
        use_another=True,
        settings={"timeout": TIMEOUT_S, "node_bytes": node_bytes},
        mishaps=[{"what": "meet", "rank": 0, "op": OP}],
    ) as job:
        job.await_meeting(OP)
        job.go(OP)
        (killed,) = proxies_of(cluster.hosts[PLACE_KILLED])
        cluster.hosts[PLACE_KILLED].run("kill", "-KILL", str(killed))
        results = job.results(60, failing=True)
        for host in cluster.hosts[:2]:
            (pid,) = proxies_of(host)
            await_nothing_left(host, pid)
    told = 0
    for rank, result in results.items():
        error = result["errors"][0]
        assert error["seconds"] < 2 * TIMEOUT_S + 1, error
        assert PLACES[error["ranks"][0]] == PLACE_KILLED, error
        assert result["another_worked"]
        here = PLACES[rank] == PLACE_KILLED
        assert error["kind"] == ("TransportError" if here else "RankLeft"), error
        words = f"proxy 0 (process {killed}), which carries out this process's"
        told += words in error["text"]
        assert "(" not in error["text"] or here, error
    # Where ranks share memory, the node's leader alone has the proxy.
    assert told == (PLACES.count(PLACE_KILLED) if node_bytes == 0 else 1)
