# SPDX-License-Identifier: BSD-3-Clause
"""The network interfaces, and the ports of RDMA devices, that this host has."""

from __future__ import annotations

import contextlib
import dataclasses
import ipaddress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mpimcast._core import ffi, lib
from mpimcast._native.core import CHECKSUMS, check, string
from mpimcast.errors import TransportError

if TYPE_CHECKING:
    from mpimcast._core import _CData as CData
    from mpimcast._settings.config import Config

# The most interfaces, or ports, that are looked at; no host is expected to have more.
_FOUND_MAX = 64

# The names of the values of enum ibv_port_state, which count from 0.
_PORT_STATES = ("no state", "down", "initializing", "armed", "active", "deferring")


@dataclass(frozen=True)
class Interface:
    """A network interface that is up and can multicast.

    Attributes
    ----------
    name : str
        The system's name, such as eth0.
    address : ipaddress.IPv4Interface
        The IPv4 address, with the netmask.
    loopback : bool
        Whether it reaches this host alone.
    mtu_bytes : int
        The longest IP packet that it sends.
    chunk_bytes_max : int
        The largest chunk that fits into a datagram of that length.
    c
        The C library's struct mmc_interface.
    """

    name: str
    address: ipaddress.IPv4Interface
    loopback: bool
    mtu_bytes: int
    chunk_bytes_max: int
    c: CData


@dataclass(frozen=True)
class Device:
    """One port of an RDMA device.

    Attributes
    ----------
    name : str
        The device's name, such as mlx5_0.
    port : int
        The port's number on the device.
    ethernet : bool
        Whether the network is Ethernet (RoCE), not InfiniBand.
    state : str
        The port's state, such as "active".
    mtu_bytes : int
        The longest payload of a packet.
    gid : ipaddress.IPv6Address
        The port's address as a GID.
    gid_index : int
        The place of `gid` in the port's table of GIDs.
    lid : int
        The port's address in an InfiniBand subnet.
    interface : str
        The network interface that has the GID's address; "" if there is none.
    groups_max : int
        How many multicast groups the device supports.
    group_members_max : int
        How many queue pairs the device supports in each group.
    chunk_bytes_max : int
        The largest chunk that fits into a packet.
    c
        The C library's struct mmc_device.
    """

    name: str
    port: int
    ethernet: bool
    state: str
    mtu_bytes: int
    gid: ipaddress.IPv6Address
    gid_index: int
    lid: int
    interface: str
    groups_max: int
    group_members_max: int
    chunk_bytes_max: int
    c: CData

    @property
    def place(self) -> str:
        """The port as NET_DEVICES names it, such as mlx5_0:1."""
        return f"{self.name}:{self.port}"


# ---- interfaces --------------------------------------------------------------


def list_interfaces(config: Config) -> list[Interface]:
    """Return the interfaces that are not loopback, in the system's order."""
    found = ffi.new("struct mmc_interface[]", _FOUND_MAX)
    count = ffi.new("uint32_t *")
    check(
        lib.mmc_udp_interfaces(found, _FOUND_MAX, count),
        "cannot list network interfaces",
    )
    return [_interface(found[index], config) for index in range(count[0])]


def find_interface(config: Config, *, same_host: bool) -> Interface:
    """Return the first interface that NET_DEVICES names and that is up.

    If it names none, return the loopback interface if all ranks are on `same_host`,
    else the first other interface. Raise TransportError if there is none.
    """
    found = ffi.new("struct mmc_interface *")
    check(
        lib.mmc_udp_interface(config.net_devices.encode(), int(same_host), found),
        "no interface for multicast",
    )
    return _interface(found[0], config)


def named_interfaces(config: Config) -> list[Interface]:
    """Return the interfaces that NET_DEVICES names and that are up, in its order."""
    found = []
    for name in config.net_devices.replace(",", " ").split():
        with contextlib.suppress(TransportError):
            alone = dataclasses.replace(config, net_devices=name)
            found.append(find_interface(alone, same_host=False))
    return found


def find_route(config: Config, peer: ipaddress.IPv4Address) -> Interface:
    """Return the interface that datagrams to `peer` leave from.

    Raise TransportError if there is none, or if it is down or cannot multicast.
    """
    found = ffi.new("struct mmc_interface *")
    check(lib.mmc_udp_route(int(peer), found), "no interface for multicast")
    return _interface(found[0], config)


def _interface(found: CData, config: Config) -> Interface:
    mine = ffi.new("struct mmc_interface *", found)
    netmask = ipaddress.IPv4Address(found.netmask)
    return Interface(
        name=string(found.name),
        address=ipaddress.IPv4Interface(
            f"{ipaddress.IPv4Address(found.address)}/{netmask}"
        ),
        loopback=bool(found.loopback),
        mtu_bytes=int(found.mtu_bytes),
        chunk_bytes_max=lib.mmc_udp_chunk_bytes(mine, CHECKSUMS[config.checksum]),
        c=mine,
    )


# ---- RDMA devices ------------------------------------------------------------


def list_devices(config: Config) -> list[Device]:
    """Return the ports of all RDMA devices, usable or not."""
    found = ffi.new("struct mmc_device[]", _FOUND_MAX)
    count = ffi.new("uint32_t *")
    check(lib.mmc_verbs_list(found, _FOUND_MAX, count), "RDMA")
    return [_device(found[index], config) for index in range(count[0])]


def find_device(config: Config, local_rank: int) -> Device:
    """Return the port for this rank, which is number `local_rank` on its host.

    The ranks of a host are spread over its usable ports. Raise TransportError if there
    is none.
    """
    found = ffi.new("struct mmc_device *")
    check(
        lib.mmc_verbs_device(config.net_devices.encode(), local_rank, found),
        "RDMA",
    )
    return _device(found[0], config)


def usable_devices(config: Config) -> list[Device]:
    """Return the ports over which the ranks of a host are spread, in that order.

    Raise TransportError if there is none.
    """
    found = [find_device(config, 0)]
    while (another := find_device(config, len(found))).place != found[0].place:
        found.append(another)
    return found


def port_state(number: int) -> str:
    """Return the name of a port's state, given its number."""
    known = number < len(_PORT_STATES)
    return _PORT_STATES[number] if known else f"state {number}"


def _device(found: CData, config: Config) -> Device:
    mine = ffi.new("struct mmc_device *", found)
    return Device(
        name=string(found.name),
        port=int(found.port),
        ethernet=bool(found.ethernet),
        state=port_state(found.state),
        mtu_bytes=int(found.mtu_bytes),
        gid=ipaddress.IPv6Address(bytes(ffi.buffer(found.gid))),
        gid_index=int(found.gid_index),
        lid=int(found.lid),
        interface=string(found.interface),
        groups_max=int(found.groups_max),
        group_members_max=int(found.group_members_max),
        chunk_bytes_max=lib.mmc_verbs_chunk_bytes(mine, CHECKSUMS[config.checksum]),
        c=mine,
    )
