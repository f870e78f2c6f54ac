# SPDX-License-Identifier: BSD-3-Clause
"""Describes this machine's RDMA devices for people, by pyverbs or our own driver."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, Any

from mpimcast._native import devices
from mpimcast.errors import TransportError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mpimcast._settings.config import Config

_NO_GID = ipaddress.IPv6Address(0)
_ETHERNET = 2  # IBV_LINK_LAYER_ETHERNET


def gather(config: Config) -> dict[str, Any]:
    """Return all ports, fit for JSON, or the reason why there are none."""
    try:
        ports = list(_by_pyverbs())
        source = "pyverbs"
    except ImportError:
        try:
            ports = [_by_driver(each) for each in devices.list_devices(config)]
        except TransportError as error:
            return {"reason": str(error)}
        source = "mpimcast's driver"
    if not ports:
        return {"reason": "none"}
    return {"source": source, "ports": ports}


def _closed(device: str) -> dict[str, Any]:
    """Return the entry of a device that this process cannot open."""
    return {"device": device, "reason": "cannot be opened"}


def _by_driver(found: devices.Device) -> dict[str, Any]:
    if found.port == 0:
        return _closed(found.name)
    return {
        "device": found.name,
        "port": found.port,
        "state": found.state,
        "link_layer": "Ethernet" if found.ethernet else "InfiniBand",
        "mtu_bytes": found.mtu_bytes,
        "groups_max": found.groups_max,
        "group_members_max": found.group_members_max,
        "gids": {} if found.gid == _NO_GID else {found.gid_index: str(found.gid)},
    }


def _by_pyverbs() -> Iterator[dict[str, Any]]:
    """Yield the ports by pyverbs, an optional package; raise ImportError without it."""
    import pyverbs.device  # type: ignore[import-not-found]
    from pyverbs.pyverbs_error import PyverbsError  # type: ignore[import-not-found]

    for device in pyverbs.device.get_device_list():
        name = device.name.decode()
        try:
            context = pyverbs.device.Context(name=name)
        except PyverbsError:
            yield _closed(name)
            continue
        limits = context.query_device()
        for port in range(1, limits.phys_port_cnt + 1):
            yield {
                "device": name,
                "port": port,
                **_port_by_pyverbs(context, port),
                "groups_max": limits.max_mcast_grp,
                "group_members_max": limits.max_mcast_qp_attach,
            }
        context.close()


def _port_by_pyverbs(context: Any, number: int) -> dict[str, Any]:
    port = context.query_port(number)
    table = {
        index: ipaddress.IPv6Address(context.query_gid(number, index).gid)
        for index in range(port.gid_tbl_len)
    }
    return {
        "state": devices.port_state(port.state),
        "link_layer": "Ethernet" if port.link_layer == _ETHERNET else "InfiniBand",
        "mtu_bytes": 128 << port.active_mtu,  # enum ibv_mtu
        "gids": {index: str(gid) for index, gid in table.items() if gid != _NO_GID},
    }
