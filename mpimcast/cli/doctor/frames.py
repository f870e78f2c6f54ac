# SPDX-License-Identifier: BSD-3-Clause
"""Reads Ethernet frames: datagrams of jobs, and what hosts say of groups."""

from __future__ import annotations

import struct
from ipaddress import IPv4Address
from typing import NamedTuple

# What is read of a frame: enough for two headers of a train of the longest datagrams.
FRAME_BYTES_MAX = 10_000

# By how many bytes protection makes a datagram longer (ffi/PROTOCOL.md).
_SEAL_BYTES = 24

_HEADER = struct.Struct(">QII")
_CHECKSUM = 0xFFFF

_ETHERNET_BYTES, _IPV4 = 14, 0x0800
_VLAN, _VLAN_BYTES = 0x8100, 4
_IP = struct.Struct(">BxHxxHxB2x4s4s")
_UDP = struct.Struct(">HHHH")
_FRAGMENT = 0x1FFF  # the offset's bits
_UDP_PROTOCOL, _IGMP_PROTOCOL, _PIM_PROTOCOL = 17, 2, 103
_PIM_HELLO = 0

# IGMP's messages (RFC 3376, section 4; RFC 2236).
_QUERY, _REPORT_1, _REPORT_2, _REPORT_3 = 0x11, 0x12, 0x16, 0x22
_LEAVING_RECORDS = (1, 3)  # with no source they say that a group is left (4.2.12)


class Form(NamedTuple):
    """What the form of a job's datagrams says of them.

    Attributes
    ----------
    channel : int
        The channel.
    is_sealed : bool
        Whether they are protected.
    ndatagrams : int
        How many datagrams a train has; 1 if it is no train.
    """

    channel: int
    is_sealed: bool
    ndatagrams: int


class Datagram(NamedTuple):
    """A UDP datagram, or a train of them, in a frame."""

    mac: bytes
    source: IPv4Address
    to: IPv4Address
    port: int
    form: Form | None


class Membership(NamedTuple):
    """A host's report that it is in a group."""

    host: IPv4Address
    group: IPv4Address


class Router(NamedTuple):
    """A host that says that it is a multicast router, or asks for members of groups."""

    host: IPv4Address
    asks: bool


def form_of(payload: bytes, nbytes: int) -> Form | None:
    """Return the form of a job's datagram or train; None if it is none.

    The header's checksum covers the length, so it says how long each datagram of a
    train is, and whether protection has made it longer.

    Parameters
    ----------
    payload
        The beginning of the datagram.
    nbytes
        Its length.
    """
    if min(len(payload), nbytes) < _HEADER.size:
        return None
    word, epoch, index = _HEADER.unpack_from(payload)
    channel = word & ~_CHECKSUM
    if not channel:
        return None
    folded = channel ^ (epoch << 32 | index)
    folded ^= folded >> 32
    own_bytes = (word ^ folded ^ folded >> 16) & _CHECKSUM
    if own_bytes < _HEADER.size:
        return None
    for seal_bytes in (0, _SEAL_BYTES):
        step = own_bytes + seal_bytes
        ndatagrams = -(-nbytes // step)
        is_train = ndatagrams > 1 and len(payload) >= step + _HEADER.size
        if step == nbytes or (
            is_train and _HEADER.unpack_from(payload, step)[0] & ~_CHECKSUM == channel
        ):
            return Form(channel, seal_bytes > 0, ndatagrams)
    return None


def read(frame: bytes) -> list[Datagram | Membership | Router]:
    """Return what a frame says; nothing if it is of no kind that is known here.

    `frame` may be cut to FRAME_BYTES_MAX.
    """
    at = _ETHERNET_BYTES
    if frame[at - 2 : at] == _VLAN.to_bytes(2, "big"):
        at += _VLAN_BYTES
    if len(frame) < at + _IP.size or frame[at - 2 : at] != _IPV4.to_bytes(2, "big"):
        return []
    length, total_bytes, fragment, protocol, source, to = _IP.unpack_from(frame, at)
    body = at + 4 * (length & 15)
    host, group = IPv4Address(source), IPv4Address(to)
    nbytes = min(len(frame), at + total_bytes) - body
    if protocol == _PIM_PROTOCOL and nbytes > 0 and frame[body] & 15 == _PIM_HELLO:
        return [Router(host, asks=False)]
    if fragment & _FRAGMENT or nbytes < _UDP.size:
        return []
    if protocol == _UDP_PROTOCOL:
        _, port, _, _ = _UDP.unpack_from(frame, body)
        nbytes = total_bytes - (body - at) - _UDP.size
        form = form_of(frame[body + _UDP.size : at + total_bytes], nbytes)
        return [Datagram(frame[6:12], host, group, port, form)]
    if protocol == _IGMP_PROTOCOL:
        return _read_igmp(host, frame[body : at + total_bytes])
    return []


def _read_igmp(host: IPv4Address, said: bytes) -> list[Datagram | Membership | Router]:
    """Return what a message of IGMP says."""
    if said[0] == _QUERY:
        return [Router(host, asks=True)]
    if said[0] in (_REPORT_1, _REPORT_2):
        return [Membership(host, IPv4Address(said[4:8]))]
    if said[0] != _REPORT_3:
        return []
    found: list[Datagram | Membership | Router] = []
    at = 8
    for _ in range(int.from_bytes(said[6:8], "big")):
        if len(said) < at + 8:
            break
        nsources = int.from_bytes(said[at + 2 : at + 4], "big")
        if nsources or said[at] not in _LEAVING_RECORDS:
            found.append(Membership(host, IPv4Address(said[at + 4 : at + 8])))
        at += 8 + 4 * (nsources + said[at + 1])
    return found
