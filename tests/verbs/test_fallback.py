# SPDX-License-Identifier: BSD-3-Clause
"""If RDMA devices cannot be used, all ranks say why, and use another transport."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from ranks import Results, gather

from bench.guest.guest import Guest

WAYS = Path(__file__).with_name("ways.py")
NRANKS = 3
SIZES = [1, 4080, 20_000]

# Scripts for `wrap` of ranks.job: they run the program without root's right to open any
# file, or to lock any amount of memory.
WITHOUT_FILES = 'set -- setpriv --bounding-set=-dac_override,-dac_read_search "$@"'
WITHOUT_MEMORY = 'ulimit -l 256; set -- setpriv --bounding-set=-ipc_lock "$@"'

# Hides libibverbs: over the folder of libraries it mounts a folder with links to all
# other libraries. SHOW undoes that.
HIDE = """
libraries=$(dirname "$(ldconfig -p | awk '/libibverbs.so.1 /{ print $NF; exit }')")
libraries=$(realpath "$libraries")
mkdir -p /run/all /run/most
mount --bind "$libraries" /run/all
for each in /run/all/*; do
    case ${each##*/} in
        libibverbs*) ;;
        *) echo "$each" ;;
    esac
done | xargs ln -s -t /run/most
mount --bind /run/most "$libraries"
echo "$libraries" >/run/hidden
"""
SHOW = """
umount --lazy "$(cat /run/hidden)" /run/all
rm -r /run/hidden /run/all /run/most
"""


@pytest.fixture(scope="module")
def three(linux: Path) -> Iterator[Guest]:
    """Yield a guest with three devices for these tests only, which may break them."""
    with Guest(linux, devices=NRANKS) as guest:
        yield guest


@pytest.fixture(scope="module")
def without_devices(linux: Path) -> Iterator[Guest]:
    """Yield a guest without any device."""
    with Guest(linux, devices=0) as guest:
        yield guest


@contextmanager
def changed(guest: Guest, change: str, back: str) -> Iterator[None]:
    """Run a shell script in the guest, and another one, `back`, at the block's end."""
    guest.run(["bash", "-ec", change], limit_s=20)
    try:
        yield
    finally:
        guest.run(["bash", "-ec", back], limit_s=20)


def check(
    guest: Guest, reason: str, *, instead: str = "udp", wrap: str = "", **settings: Any
) -> Results:
    """Check that verbs,udp,mpi uses `instead`, that verbs fails, and that both say why.

    Parameters
    ----------
    guest
        The guest to run in.
    reason
        The reason that all ranks must give.
    instead
        The transport that is used instead of verbs.
    wrap
        See ranks.job.
    **settings
        The settings of the communicators.
    """
    results = gather(
        guest, NRANKS, program=WAYS, wrap=wrap, sizes=SIZES, settings=settings
    )
    for result in results.values():
        any_, verbs = result["any"], result["verbs"]
        assert any_["error"] is None
        assert any_["explained"].startswith(f"{instead}: ")
        assert reason in any_["explained"], any_
        kind, text = verbs["error"]
        assert kind == "TransportError"
        assert reason in text
        assert verbs["explained"] == f"none: {text}"
        # The error has the same text on all ranks.
        assert text == results[0]["verbs"]["error"][1]
    return results


def on_rank(rank: int, script: str) -> str:
    """Return a script that runs on one rank only."""
    return f"if [ $OMPI_COMM_WORLD_RANK = {rank} ]; then {script}; fi"


def test_no_device(without_devices: Guest) -> None:
    """Ranks use UDP if the machine has no RDMA device."""
    check(without_devices, "rank 0: RDMA: ")


def test_no_library(three: Guest) -> None:
    """Ranks use UDP if libibverbs is missing."""
    with changed(three, HIDE, SHOW):
        check(three, "libibverbs.so.1: cannot open shared object file")


def test_no_such_device_on_a_rank(three: Guest) -> None:
    """All ranks use UDP if one rank's NET_DEVICES names no RDMA device."""
    only = on_rank(1, "export MPIMCAST_NET_DEVICES=lo")
    check(three, "rank 1: RDMA: ", wrap=only)


@pytest.mark.long
def test_no_interface_on_a_rank(three: Guest) -> None:
    """All use the MPI library if one rank's NET_DEVICES names nothing that exists."""
    only = on_rank(1, "export MPIMCAST_NET_DEVICES=none")
    check(three, "rank 1: RDMA: ", instead="mpi", wrap=only)


@pytest.mark.parametrize("ranks", ["all", pytest.param("one", marks=pytest.mark.long)])
def test_no_permission(three: Guest, ranks: str) -> None:
    """All ranks use UDP if one rank, or every rank, may not open the devices' files."""
    wrap = WITHOUT_FILES if ranks == "all" else on_rank(2, WITHOUT_FILES)
    which = 0 if ranks == "all" else 2
    files = "/dev/infiniband/uverbs*"
    with changed(three, f"chmod 000 {files}", f"chmod 666 {files}"):
        results = check(three, f"rank {which}: RDMA: ", wrap=wrap)
    assert "Permission denied" in results[0]["verbs"]["error"][1]


def test_no_memory(three: Guest) -> None:
    """Ranks use UDP if they may lock less memory than the queues need."""
    check(three, "(check ulimit -l and the device's limits)", wrap=WITHOUT_MEMORY)


def test_membership_refused(three: Guest) -> None:
    """If no socket may join a group, JOIN=attach fails, but JOIN=auto does not.

    JOIN=auto first asks the connection manager, which succeeds.
    """
    sysctl = "/proc/sys/net/ipv4/igmp_max_memberships"
    with changed(three, f"echo 0 >{sysctl}", f"echo 1000 >{sysctl}"):
        check(three, "cannot join 239.", instead="mpi", join="attach")
        results = gather(three, NRANKS, sizes=SIZES)
    assert results[0]["explained"].startswith("verbs: RoCE multicast")


@pytest.mark.long
def test_both_ways_refused(three: Guest) -> None:
    """JOIN=auto fails if neither sockets nor the connection manager may join."""
    sysctl = "/proc/sys/net/ipv4/igmp_max_memberships"
    file = "/dev/infiniband/rdma_cm"
    forbid = f"echo 0 >{sysctl}; chmod 000 {file}"
    with changed(three, forbid, f"echo 1000 >{sysctl}; chmod 666 {file}"):
        check(three, "cannot join 239.", instead="mpi", wrap=WITHOUT_FILES)


@pytest.mark.long
def test_no_connection_manager(three: Guest) -> None:
    """If the connection manager is unusable, a socket joins the group instead."""
    file = "/dev/infiniband/rdma_cm"
    with changed(three, f"chmod 000 {file}", f"chmod 666 {file}"):
        results = gather(three, NRANKS, sizes=SIZES, wrap=WITHOUT_FILES)
    assert results[0]["explained"].startswith("verbs: RoCE multicast")


@pytest.mark.long
def test_no_address(three: Guest) -> None:
    """A device without an IPv4 address is not chosen; naming it is an error."""
    address = "10.8.0.2/24 dev net1"
    with changed(
        three,
        f"ip addr del {address}",
        f"ip addr add {address}; "
        "ip route add 10.8.0.0/24 dev net1 src 10.8.0.2 table 1001; "
        "ip route add 224.0.0.0/4 dev net1 src 10.8.0.2 table 1001; "
        "ip route replace local 10.8.0.2 dev net1 table 1001",
    ):
        results = gather(three, NRANKS, sizes=SIZES)
        check(
            three,
            "rxe1:1 has no RoCE v2 GID with an IPv4 address",
            wrap=on_rank(1, "export MPIMCAST_NET_DEVICES=rxe1"),
            instead="mpi",
        )
    ports = [result["explained"].split()[3] for result in results.values()]
    assert ports == ["rxe0:1,", "rxe2:1,", "rxe0:1,"]


def test_settings_differ(three: Guest) -> None:
    """If ranks differ in verbs settings, all raise an error that names the settings."""
    results = gather(
        three,
        NRANKS,
        failing=True,
        wrap=on_rank(2, "export MPIMCAST_JOIN=attach MPIMCAST_RECEIVES=64"),
        sizes=SIZES,
    )
    for result in results.values():
        error = result["errors"][0]
        assert error["kind"] == "ConfigError"
        assert "JOIN is 'auto' on ranks 0, 1, but 'attach' on rank 2" in error["text"]
        assert "RECEIVES is 0 on ranks 0, 1, but 64 on rank 2" in error["text"]


def test_named_devices(three: Guest) -> None:
    """A host's ranks use the ports that NET_DEVICES names in turn, in its order."""
    results = gather(
        three, NRANKS, sizes=SIZES, settings={"net_devices": "rxe2:1, rxe1"}
    )
    ports = [result["explained"].split()[3] for result in results.values()]
    assert ports == ["rxe2:1,", "rxe1:1,", "rxe2:1,"]
