# SPDX-License-Identifier: BSD-3-Clause
"""``doctor security`` on a host of a job finds who attacks it, and nobody else."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import support
from attack import NRANKS, Attacker, attacked, watch

from bench.testbed.cluster import Cluster, address

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
