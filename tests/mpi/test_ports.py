# SPDX-License-Identifier: BSD-3-Clause
"""Sockets keep to GROUP and PORTS, and to what other programs leave free of them."""

from __future__ import annotations

import contextlib
import ipaddress
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from mpi4py import MPI

from mpimcast import Intracomm, TransportError
from mpimcast._settings.ranges import Groups, Ports

# How many ports more than needed a range has, since other programs may hold some.
SPARE = 8

pytestmark = [
    pytest.mark.network,
    pytest.mark.skipif(MPI.COMM_WORLD.size == 1, reason="one rank opens nothing"),
]


def own_sockets() -> set[tuple[ipaddress.IPv4Address, int]]:
    """Return the addresses and ports that this process's UDP sockets are bound to."""
    inodes = set()
    for path in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            inodes.add(path.readlink().name)
    bound = set()
    for line in Path("/proc/self/net/udp").read_text().splitlines()[1:]:
        fields = line.split()
        address, port = fields[1].split(":")
        if f"socket:[{fields[9]}]" in inodes:
            raw = bytes.fromhex(address)[::-1]
            bound.add((ipaddress.IPv4Address(raw), int(port, 16)))
    return bound


@pytest.fixture
def slot(mpi_comm: MPI.Intracomm) -> Iterator[int]:
    """Yield a number that no other run on this host has until the test's end.

    Rank 0 binds an abstract socket whose name contains the number. The kernel frees the
    name with the socket, even if the process is killed.
    """
    with socket.socket(socket.AF_UNIX) as lease:
        number = 0
        while mpi_comm.rank == 0:
            with contextlib.suppress(OSError):
                lease.bind(f"\0mpimcast-test-ports-{number}")
                break
            number += 1
        yield mpi_comm.bcast(number)
        mpi_comm.Barrier()


def ports_of(slot: int, count: int) -> Ports:
    """Return ports that only this run uses.

    Each slot has 64 of them, below those that the kernel assigns.
    """
    first = 10000 + slot % 300 * 64
    return Ports(first, first + count - 1)


def groups_of(slot: int, count: int) -> Groups:
    """Return multicast groups that only this run uses. Each slot has 16 of them."""
    first = int(ipaddress.IPv4Address("239.200.0.0")) + slot * 16
    return Groups(first, first + count - 1)


def gather(comm: Intracomm) -> None:
    """Gather 3000 bytes of each rank, and check them."""
    place = np.zeros((comm.size, 3000), np.uint8)
    comm.Allgather(np.full(3000, comm.rank, np.uint8), place)
    assert (place == np.arange(comm.size)[:, None]).all()


@pytest.fixture
def take() -> Iterator[Callable[[Groups, Ports], None]]:
    """Yield a function by which rank 0 takes ports until the test's end.

    It binds sockets to all the ports, with the address of the first group.
    """
    with contextlib.ExitStack() as taken:

        def take(groups: Groups, ports: Ports) -> None:
            if MPI.COMM_WORLD.rank != 0:
                return
            for port in range(ports.first, ports.last + 1):
                other = taken.enter_context(
                    socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
                )
                other.bind((str(ipaddress.IPv4Address(groups.first)), port))

        yield take


def test_sockets_keep_to_ranges(
    make_comm: Callable[..., Intracomm], mpi_comm: MPI.Intracomm, slot: int
) -> None:
    """All sockets of several communicators have ports of PORTS and groups of GROUP."""
    ncomms = 3
    groups = groups_of(slot, 4)
    ports = ports_of(slot, min(64, ncomms * 2 * mpi_comm.size + SPARE))
    before = own_sockets()
    for number in range(ncomms):
        # Other subgroups than before, so that it does not share the sockets.
        comm = make_comm(group=groups, ports=ports, subgroups=1 + number, repair="nak")
        gather(comm)
    opened = own_sockets() - before
    # Each has two sockets of its own address, and some that are bound to groups.
    assert len(opened) == 2 * ncomms + len(
        {place for place in opened if place[0].is_multicast}
    )
    for address, port in opened:
        assert ports.first <= port <= ports.last
        if address.is_multicast:
            assert groups.first <= int(address) <= groups.last


def test_a_taken_port_is_passed_over(
    make_comm: Callable[..., Intracomm],
    mpi_comm: MPI.Intracomm,
    slot: int,
    take: Callable[[Groups, Ports], None],
) -> None:
    """If another program holds the group's port, all ranks take the next free one.

    Here it holds all but the last.
    """
    group = groups_of(slot, 1)
    ports = ports_of(slot, 2 * mpi_comm.size + SPARE)
    take(group, Ports(ports.first, ports.last - 1))
    gather(make_comm(group=group, ports=ports))
    assert {port for address, port in own_sockets() if address.is_multicast} >= {
        ports.last
    }


def test_no_port_is_left(
    make_comm: Callable[..., Intracomm],
    mpi_comm: MPI.Intracomm,
    slot: int,
    take: Callable[[Groups, Ports], None],
) -> None:
    """If no port is left, all ranks raise the same error, which says what to widen."""
    group = groups_of(slot, 1)
    ports = ports_of(slot, 2 * mpi_comm.size + SPARE)
    one = ports_of(slot, 1)
    with pytest.raises(TransportError, match=r"no port from \d+ .* widen PORTS"):
        gather(make_comm(group=group, ports=one))
    take(group, ports)
    with pytest.raises(TransportError, match=r"rank 0: .*every port.*PORTS") as raised:
        gather(make_comm(group=group, ports=ports))
    assert raised.value.ranks == (0,)
    assert len(set(mpi_comm.allgather(str(raised.value)))) == 1
