# SPDX-License-Identifier: BSD-3-Clause
"""``doctor security`` on a host of a job finds who attacks it, and nobody else."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import support
from attack import NRANKS, Attacker, attacked, watch

from bench.testbed.cluster import Cluster, address
from bench.testbed.host import Host

ATTEMPTS = 5
STRANGER = NRANKS  # the number of the host that has no part in the job
pytestmark = pytest.mark.timeout(120)

# Forgeries, how many datagrams of each are sent at a time, words of what the doctor
# finds, and whether the datagrams bear addresses of ranks.
FORGERIES = (
    ("right_channel", 8000, "floods", True),
    ("header_flips", 100, "as if it were", True),
    ("strangers", 8000, "that no rank sends", False),
)


@pytest.fixture(scope="module")
def cluster(able: None) -> Iterator[Cluster]:  # noqa: ARG001 -- must come first
    """Yield hosts, of which the last one is a stranger's.

    They are not those of other tests, since the switch takes the stranger for a router.
    """
    with Cluster(NRANKS + 1) as cluster:
        yield cluster


def test_quiet_network(cluster: Cluster) -> None:
    """Without a job there is nothing but notes."""
    status, serious, document = watch(cluster.hosts[0])
    assert (status, serious) == (0, [])
    found = [each["what"] for each in document["findings"]]
    assert "no job was heard on eth0" in found


def test_without_the_capability(cluster: Cluster) -> None:
    """Without CAP_NET_RAW the doctor says that it sees no frame, and what to do."""
    drop = (support.require_tool("setpriv"), "--bounding-set", "-net_raw")
    status, serious, document = watch(cluster.hosts[0], *drop)
    assert (status, serious) == (0, [])
    (note,) = document["findings"]
    assert note["what"] == "eth0 cannot be watched"
    assert "CAP_NET_RAW" in note["mend"]


# Opens two sockets on one place, the second of another user, until the input ends.
TWO_USERS = """
import os, socket, sys
for user in (0, 65534):
    os.seteuid(user)
    each = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    each.bind(("239.192.3.4", 20500))
    os.dup(each.fileno())
print("bound", flush=True)
sys.stdin.read()
"""

# Joins the group sys.argv[1] and leaves it, again and again, until the input ends. Each
# time the kernel reports that.
JOINS = """
import select, socket, sys
ended = False
while not ended:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as each:
        member = socket.inet_aton(sys.argv[1]) + socket.inet_aton(sys.argv[2])
        each.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, member)
        ended = select.select([sys.stdin], [], [], 0.2)[0]
"""


@contextlib.contextmanager
def running(host: Host, *words: str) -> Iterator[subprocess.Popen[str]]:
    """Run Python on a host until the end of the block, which ends its input."""
    process = subprocess.Popen(
        [*host.enter(), sys.executable, "-c", *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.communicate()


def test_two_users(cluster: Cluster) -> None:
    """Users of this host who receive the same group and port are named."""
    with running(cluster.hosts[0], TWO_USERS) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "bound\n"
        status, serious, _ = watch(cluster.hosts[0])
    assert status == 3
    (found,) = serious
    assert "239.192.3.4:20500 is received by processes of nobody, root" in found["what"]


def test_silent_listener(cluster: Cluster, tmp_path: Path, seed: int) -> None:
    """On a switch that does not snoop, a host that joins and sends nothing is named."""
    (switch,) = cluster.switches
    switch.run("ip", "link", "set", "br0", "type", "bridge", "mcast_snooping", "0")
    place = f"{address(STRANGER)} receives"
    with attacked(cluster, tmp_path, seed, protect="off", pause_s=0.002) as (job, _):
        _, _, document = watch(cluster.hosts[0])
        group, _ = document["security"]["jobs"][0]["place"].split(":")
        with running(cluster.hosts[STRANGER], JOINS, group, address(STRANGER)):
            for _ in range(ATTEMPTS):
                status, serious, _ = watch(cluster.hosts[0])
                if any(each["what"].startswith(place) for each in serious):
                    break
        job.stop()
    assert status == 3
    assert any(each["what"].startswith(place) for each in serious), serious
    switch.run("ip", "link", "set", "br0", "type", "bridge", "mcast_snooping", "1")


@contextlib.contextmanager
def sending(attacker: Attacker, name: str, count: int) -> Iterator[None]:
    """Let the attacker send `count` datagrams again and again, in a thread."""
    ended = threading.Event()

    def send() -> None:
        while not ended.is_set():
            attacker.send(name, count)

    thread = threading.Thread(target=send)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def test_attacked_job(cluster: Cluster, tmp_path: Path, seed: int) -> None:
    """An attacker is named by its address in the Ethernet, and no rank is accused."""
    said = cluster.hosts[STRANGER].run("ip", "-json", "link", "show", "eth0")
    mac = json.loads(said)[0]["address"]
    with attacked(cluster, tmp_path, seed, protect="off", pause_s=0.002) as (
        job,
        attacker,
    ):
        status, serious, document = watch(cluster.hosts[1])
        assert status == 3
        (found,) = [each for each in serious if "multicast router" not in each["what"]]
        assert "is not protected" in found["what"]
        assert "PROTECT=authenticate" in found["mend"]
        (seen,) = document["security"]["jobs"]
        assert seen["ranks"] == [address(rank) for rank in range(NRANKS)]
        assert not seen["protected"]
        assert document["security"]["strangers"] == []
        for name, count, words, forges in FORGERIES:
            with sending(attacker, name, count):
                for _ in range(ATTEMPTS):
                    status, serious, document = watch(cluster.hosts[0])
                    strangers = document["security"]["strangers"]
                    if strangers:
                        break
            assert status == 3, name
            assert {each["mac"] for each in strangers} == {mac}, name
            assert any(each["forges"] == forges for each in strangers), name
            accused = [each["what"] for each in serious if mac in each["what"]]
            assert any(words in each for each in accused), name
            assert any("multicast router" in each["what"] for each in serious), name
        job.stop()
