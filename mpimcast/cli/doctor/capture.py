# SPDX-License-Identifier: BSD-3-Clause
"""Captures the frames that a network interface sends and receives."""

from __future__ import annotations

import socket
import struct
import time
from typing import TYPE_CHECKING, NamedTuple

from mpimcast.cli.doctor.frames import FRAME_BYTES_MAX

if TYPE_CHECKING:
    from collections.abc import Callable

_ALL_PROTOCOLS = 3
_BUFFER_BYTES = 8 << 20
_SOL_PACKET, _PACKET_STATISTICS = 263, 6
_LOOPBACK_TYPE = 772  # ARPHRD_LOOPBACK


class Captured(NamedTuple):
    """What was captured.

    Attributes
    ----------
    nframes, nmissed : int
        How many frames there were, and how many of them came too fast to be seen.
    mac : str
        The interface's own address in the Ethernet.
    """

    nframes: int
    nmissed: int
    mac: str


def capture(device: str, seconds: float, see: Callable[[bytes], None]) -> Captured:
    """Pass each frame of some seconds to `see`.

    Raises
    ------
    PermissionError
        If this process may not capture frames, which takes CAP_NET_RAW.
    OSError
        If there is no such device.
    """
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as tap:
        tap.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER_BYTES)
        tap.bind((device, _ALL_PROTOCOLS))
        deadline_s = time.monotonic() + seconds
        while (left_s := deadline_s - time.monotonic()) > 0:
            tap.settimeout(left_s)
            try:
                frame, (_, _, kind, hardware, _) = tap.recvfrom(FRAME_BYTES_MAX)
            except TimeoutError:
                break
            # Over loopback each frame comes twice, as it is sent and as it is received.
            if kind != socket.PACKET_OUTGOING or hardware != _LOOPBACK_TYPE:
                see(frame)
        counts = struct.Struct("=II")
        said = tap.getsockopt(_SOL_PACKET, _PACKET_STATISTICS, counts.size)
        mac = tap.getsockname()[4].hex(":")
    nframes, nmissed = counts.unpack(said)
    return Captured(nframes, nmissed, mac)
