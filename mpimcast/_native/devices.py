# SPDX-License-Identifier: BSD-3-Clause
"""The network interfaces and ports of RDMA devices that a process can open."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mpimcast._core import ffi, lib
from mpimcast._native.core import CHECKSUMS, check, string

if TYPE_CHECKING:
    from mpimcast._core import _CData as CData
    from mpimcast._settings.config import Config

# No machine is expected to have more interfaces or ports.
_FOUND_MAX = 64

# enum ibv_port_state.
_PORT_STATES = ("no state", "down", "initializing", "armed", "active", "deferring")


@dataclass(frozen=True)
class Interface:
    """A network interface that can be opened."""

    name: str
    address: ipaddress.IPv4Interface  # includes the netmask
    loopback: bool
    mtu_bytes: int
    chunk_bytes_max: int
    c: CData


@dataclass(frozen=True)
class Device:
    """A port of an RDMA device."""

    name: str
    port: int
    ethernet: bool
    state: str
    mtu_bytes: int
    gid: ipaddress.IPv6Address
    gid_index: int
    lid: int
    interface: str  # the network interface that has the GID's address; "" for none
    groups_max: int
    group_members_max: int
    chunk_bytes_max: int
    c: CData


# ---- interfaces --------------------------------------------------------------


def list_interfaces(config: Config) -> list[Interface]:
    """Return the interfaces to other hosts, in the system's order."""
    found = ffi.new("struct mmc_interface[]", _FOUND_MAX)
    count = ffi.new("uint32_t *")
    check(
        lib.mmc_udp_interfaces(found, _FOUND_MAX, count),
        "cannot list network interfaces",
    )
    return [_interface(found[index], config) for index in range(count[0])]


def find_interface(config: Config, *, same_host: bool) -> Interface:
    """Find the interface for multicast, as ``mmc_udp_interface`` does."""
    found = ffi.new("struct mmc_interface *")
    check(
        lib.mmc_udp_interface(config.net_devices.encode(), int(same_host), found),
        "no interface for multicast",
    )
    return _interface(found[0], config)


def find_route(config: Config, peer: ipaddress.IPv4Address) -> Interface:
    """Find the interface that datagrams to `peer` leave from."""
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


def find_device(config: Config, place: int) -> Device:
    """Find the port for rank number `place` of this host's ranks."""
    found = ffi.new("struct mmc_device *")
    check(
        lib.mmc_verbs_device(config.net_devices.encode(), place, found),
        "RDMA",
    )
    return _device(found[0], config)


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
