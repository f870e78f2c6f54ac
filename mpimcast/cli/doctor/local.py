# SPDX-License-Identifier: BSD-3-Clause
"""What this host's kernel tells every user of sockets and of the hosts around."""

from __future__ import annotations

import contextlib
import pwd
import struct
from ipaddress import IPv4Address
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mpimcast._settings.ranges import Groups

_PROC = Path("/proc")


class Place(NamedTuple):
    """An address, such as a group's, and a port, at which a rank receives."""

    address: IPv4Address
    port: int

    def __str__(self) -> str:
        """Return it as people write it."""
        return f"{self.address}:{self.port}"


class Socket(NamedTuple):
    """A UDP socket of this host.

    Attributes
    ----------
    place : Place
        Where it receives.
    user : str
        Whose it is.
    inode : str
        Its number in the system.
    """

    place: Place
    user: str
    inode: str


def sockets() -> list[Socket]:
    """Return the UDP sockets of this host, of all users."""
    found = []
    for line in (_PROC / "net/udp").read_text(encoding="ascii").splitlines()[1:]:
        fields = line.split()
        address, port = fields[1].split(":")
        place = Place(IPv4Address(_bytes_of(address)), int(port, 16))
        found.append(Socket(place, _user(int(fields[7])), fields[9]))
    return found


def _bytes_of(address: str) -> bytes:
    """Return the bytes of an address that the kernel shows as a number in hex."""
    return struct.pack("=I", int(address, 16))


def _user(number: int) -> str:
    with contextlib.suppress(KeyError):
        return pwd.getpwuid(number).pw_name
    return str(number)


def of_groups(found: Iterable[Socket], groups: Groups) -> list[Socket]:
    """Return the sockets that receive a group of `groups`."""
    return [
        each for each in found if groups.first <= int(each.place.address) <= groups.last
    ]


def beside(found: Iterable[Socket], some: Iterable[Socket]) -> frozenset[Place]:
    """Return where the processes that have `some` sockets receive by their others.

    Processes of other users are not looked into, unless this is root.
    """
    inodes = {f"socket:[{each.inode}]" for each in some}
    there: set[str] = set()
    for folder in _PROC.glob("[0-9]*/fd"):
        with contextlib.suppress(OSError):
            theirs = {str(link.readlink()) for link in folder.iterdir()}
            if theirs & inodes:
                there |= theirs
    return frozenset(
        each.place
        for each in found
        if f"socket:[{each.inode}]" in there and not each.place.address.is_multicast
    )


def neighbour_macs() -> dict[IPv4Address, str]:
    """Return the address in the Ethernet of each host that the kernel knows."""
    lines = (_PROC / "net/arp").read_text(encoding="ascii").splitlines()[1:]
    return {IPv4Address(line.split()[0]): line.split()[3] for line in lines}
