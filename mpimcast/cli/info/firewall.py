# SPDX-License-Identifier: BSD-3-Clause
"""Describes what a firewall between hosts must let through for UDP multicast."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from mpimcast._settings.ranges import Ports

if TYPE_CHECKING:
    from mpimcast._settings.config import Config

_KERNEL_PORTS = Path("/proc/sys/net/ipv4/ip_local_port_range")


def passage(config: Config) -> dict[str, str]:
    """Return the ranges of groups, of groups' ports, and of hosts' own ports."""
    return {
        "groups": str(config.group),
        "group_ports": str(config.group_ports),
        "host_ports": str(config.ports or _kernel_ports()),
    }


def sentence(passed: dict[str, str]) -> str:
    """Return the result of `passage` as a sentence for people."""
    return (
        f"a firewall must let through IGMP, UDP to {passed['groups']} on ports "
        f"{passed['group_ports']}, and UDP and TCP between hosts on ports "
        f"{passed['host_ports']} (GROUP, PORTS)"
    )


def _kernel_ports() -> Ports | str:
    """Return the ports that the kernel chooses from, or words if they are unknown."""
    try:
        first, last = map(int, _KERNEL_PORTS.read_text(encoding="ascii").split())
    except (OSError, ValueError):
        return "that the kernel chooses"
    return Ports(first, last)
