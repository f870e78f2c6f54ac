# SPDX-License-Identifier: BSD-3-Clause
"""The emulated cluster has the properties that it claims, and leaves nothing behind.

It consists of namespaces, and the tests of this folder run on it.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest
import support
from job import Job

from bench.testbed.cluster import Cluster, address
from bench.testbed.flow import flowing

pytestmark = pytest.mark.timeout(60)

# Makes a cluster, prints its process ids, and keeps it until standard input ends.
OWNER = """
import sys
from bench.testbed.cluster import Cluster
cluster = Cluster(2)
print(cluster.head.pid, *(host.pid for host in cluster.hosts), flush=True)
sys.stdin.read()
"""


@pytest.mark.usefixtures("able")
def test_a_killed_owner_leaves_nothing() -> None:
    """The hosts, and every process in them, end with the process that made them."""
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER],
        cwd=support.ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert owner.stdout is not None
    assert owner.stdin is not None
    with owner.stdout, owner.stdin:
        hosts = [Path("/proc") / pid for pid in owner.stdout.readline().split()]
        assert len(hosts) == 3
        assert all(host.exists() for host in hosts)
        owner.kill()
        owner.wait()
    deadline_s = time.monotonic() + 10
    while any(host.exists() for host in hosts):
        assert time.monotonic() < deadline_s
        time.sleep(0.01)


def test_two_clusters_at_once(cluster: Cluster, tmp_path: Path) -> None:
    """Two clusters, whose hosts have the same names and addresses, run jobs at once.

    One job is killed while both are under way. The other job goes on, and a third job
    runs on the cluster of the killed job.
    """
    mishaps = [{"what": "meet", "rank": 0, "op": 3}]
    with Cluster(2) as other:
        folders = [tmp_path / "spared", tmp_path / "killed"]
        spared, killed = (
            Job(each, 2, folder, sizes=[100_000], repeat=6, mishaps=mishaps)
            for each, folder in zip((cluster, other), folders, strict=True)
        )
        with spared:
            with killed:
                for job in (spared, killed):
                    job.await_meeting(3)
            spared.go(3)
            spared.results(30)
        with Job(other, 2, tmp_path / "next", sizes=[100_000]) as job:
            job.results(30)


def test_hosts(cluster: Cluster) -> None:
    """Each host has its name and address, and finds another host by name."""
    for number, host in enumerate(cluster.hosts):
        assert host.run("hostname").strip() == host.name == f"host{number}"
        assert f"10.77.0.{10 + number}/24" in host.run("ip", "address")
    look_up = "import socket; print(socket.gethostbyname('host2'))"
    assert cluster.hosts[0].run(sys.executable, "-c", look_up).strip() == "10.77.0.12"


def measure_rate(cluster: Cluster) -> float:
    """Send 5 MiB by TCP; return the rate in bits per second, as the port counts."""
    receive = (
        "import socket; s = socket.create_server(('', 5000)); c, _ = s.accept()\n"
        "while c.recv(1 << 20): pass"
    )
    send = (
        "import socket, time\n"
        "deadline = time.monotonic() + 10\n"
        "while True:\n"
        "  try: s = socket.create_connection(('host1', 5000)); break\n"
        "  except ConnectionRefusedError: assert time.monotonic() < deadline\n"
        "begin = time.monotonic()\n"
        "s.sendall(bytes(5 << 20)); s.shutdown(socket.SHUT_WR); s.recv(1)\n"
        "print(time.monotonic() - begin)"
    )
    before = cluster.ports()
    receiver = subprocess.Popen(
        [*cluster.hosts[1].enter(), sys.executable, "-c", receive]
    )
    took_s = float(cluster.hosts[0].run(sys.executable, "-c", send))
    receiver.wait(10)
    after = cluster.ports()
    sent_bytes = (after["host0"] - before["host0"]).sent_bytes
    assert 5 << 20 < sent_bytes < 1.07 * (5 << 20)
    assert (after["to1"] - before["to1"]).sent_bytes == pytest.approx(sent_bytes, 0.02)
    return sent_bytes * 8 / took_s


def test_rate(cluster: Cluster) -> None:
    """A link carries TCP at its rate, 200 Mbit/s, and never faster.

    Other load on the machine may slow one transfer down, so the fastest of four counts.
    """
    rates = [measure_rate(cluster)]
    while max(rates) <= 0.8 * 200e6 and len(rates) < 4:
        rates.append(measure_rate(cluster))
    # The rate may exceed 200 Mbit/s a little, since an idle link saves up a burst.
    assert 0.8 * 200e6 < max(rates) < 1.03 * 200e6


def test_a_flow_of_tcp(cluster: Cluster) -> None:
    """A flow reports no more received bytes than have passed its port.

    A flow is a TCP connection that loads the network. Its two processes end with the
    ``with`` block.
    """
    before = cluster.ports()["to1"]
    with flowing(cluster.hosts[0], cluster.hosts[1], address(1)) as flow:
        deadline_s = time.monotonic() + 20
        while flow.received_bytes() < 3 << 20:
            assert time.monotonic() < deadline_s
            time.sleep(0.01)
        received_bytes = flow.received_bytes()
        assert (cluster.ports()["to1"] - before).sent_bytes > received_bytes
    assert flow.receiver.poll() is not None
