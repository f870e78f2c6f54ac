# SPDX-License-Identifier: BSD-3-Clause
"""GROUP and PORTS: all sockets lie within, and sockets of others there do no harm."""

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

# Other programs may hold some of the ports.
SPARE = 8

pytestmark = pytest.mark.skipif(
    MPI.COMM_WORLD.size == 1, reason="one rank opens nothing"
)


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
def slot(library: MPI.Intracomm) -> Iterator[int]:
    """Yield a number that no other run on this host has until the test's end.

    It names an abstract socket: the kernel frees the name however that is closed.
    """
    with socket.socket(socket.AF_UNIX) as lease:
        number = 0
        while library.rank == 0:
            with contextlib.suppress(OSError):
                lease.bind(f"\0mpimcast-test-ports-{number}")
                break
            number += 1
        yield library.bcast(number)
        library.Barrier()


def ports_of(slot: int, count: int) -> Ports:
    """Return ports that only this run uses, below those that the kernel assigns."""
    first = 10000 + slot % 300 * 64
    return Ports(first, first + count - 1)


def groups_of(slot: int, count: int) -> Groups:
    """Return multicast groups that only this run uses."""
    first = 0xEFC80000 + slot * 16
    return Groups(first, first + count - 1)


def gather(comm: Intracomm) -> None:
    """Check that an operation delivers the right data."""
    place = np.zeros((comm.size, 3000), np.uint8)
    comm.Allgather(np.full(3000, comm.rank, np.uint8), place)
    assert (place == np.arange(comm.size)[:, None]).all()


@pytest.fixture
def take() -> Iterator[Callable[[Groups, Ports], None]]:
    """Yield a function with which rank 0 takes ports of groups until the test's end."""
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


def test_within(
    make: Callable[..., Intracomm], library: MPI.Intracomm, slot: int
) -> None:
    """Several communicators of several ranks stay within one range."""
    ncomms = 3
    groups = groups_of(slot, 4)
    ports = ports_of(slot, min(64, ncomms * 2 * library.size + SPARE))
    before = own_sockets()
    for number in range(ncomms):
        # Other settings than before, and so sockets of its own.
        comm = make(group=groups, ports=ports, subgroups=1 + number, repair="nak")
        gather(comm)
    opened = own_sockets() - before
    assert len(opened) == 2 * ncomms + len(
        {place for place in opened if place[0].is_multicast}
    )
    for address, port in opened:
        assert ports.first <= port <= ports.last
        if address.is_multicast:
            assert groups.first <= int(address) <= groups.last


def test_taken(
    make: Callable[..., Intracomm],
    library: MPI.Intracomm,
    slot: int,
    take: Callable[[Groups, Ports], None],
) -> None:
    """If another program holds the drawn port, all ranks take the next one."""
    group = groups_of(slot, 1)
    ports = ports_of(slot, 2 * library.size + SPARE)
    take(group, Ports(ports.first, ports.last - 1))
    gather(make(group=group, ports=ports))
    assert {port for address, port in own_sockets() if address.is_multicast} >= {
        ports.last
    }


def test_none_left(
    make: Callable[..., Intracomm],
    library: MPI.Intracomm,
    slot: int,
    take: Callable[[Groups, Ports], None],
) -> None:
    """If no port is left, all ranks raise the same error, which says what to widen."""
    group = groups_of(slot, 1)
    ports = ports_of(slot, 2 * library.size + SPARE)
    one = ports_of(slot, 1)
    with pytest.raises(TransportError, match=r"no port from \d+ .* widen PORTS"):
        gather(make(group=group, ports=one))
    take(group, ports)
    with pytest.raises(TransportError, match=r"rank 0: .*every port.*PORTS") as raised:
        gather(make(group=group, ports=ports))
    assert raised.value.ranks == (0,)
    assert len(set(library.allgather(str(raised.value)))) == 1
