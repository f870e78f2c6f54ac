# SPDX-License-Identifier: BSD-3-Clause
"""The address of this host, as launchers on other hosts can use it."""

from __future__ import annotations

import ipaddress
import socket


def towards(host: str, port: int) -> str:
    """Return the address from which this host would send to a host, or its own name.

    It is the name if that address means nothing elsewhere, as where a host knows its
    own name for 127.0.1.1, and if it is one of IPv6, whose colons launchers take for
    the end of a host's name.
    """
    family, _, _, _, there = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]
    with socket.socket(family, socket.SOCK_DGRAM) as unsent:
        unsent.connect(there)
        found: str = unsent.getsockname()[0]
    if family == socket.AF_INET6 or ipaddress.ip_address(found).is_loopback:
        return socket.gethostname()
    return found
