# SPDX-License-Identifier: BSD-3-Clause
"""The devices that a rank could use for a rail."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from mpimcast._native.devices import Device, Interface


class Candidate(NamedTuple):
    """A device that a rank can use for a rail.

    Attributes
    ----------
    device : str
        Its name; empty if the rank cannot use it.
    choice : str
        The value of NET_DEVICES by which a rank chooses this device alone.
    folder : str
        Its folder in /sys.
    direct : bool
        Whether it reaches other nodes without a router, as far as that is known.
    """

    device: str
    choice: str
    folder: str
    direct: bool


def of_interface(found: Interface, *, direct: bool = True) -> Candidate:
    """Return a network interface, with the address by which it was found."""
    folder = f"/sys/class/net/{found.name}/device"
    return Candidate(found.name, str(found.address.ip), folder, direct)


def of_port(found: Device) -> Candidate:
    """Return a port of an RDMA device."""
    folder = f"/sys/class/infiniband/{found.name}/device"
    return Candidate(found.place, found.place, folder, direct=True)
