# SPDX-License-Identifier: BSD-3-Clause
"""Datagrams of mpimcast, and the Ethernet frames around them, as tests forge them.

See "Datagrams" and "Control messages" in ffi/PROTOCOL.md.
"""

from __future__ import annotations

import functools
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

# The kinds of control messages.
RECORD, NAK, NCF, REPORT, WATERMARK, DIRECT_NAK, ADVERT, SENT, BLOCKS = range(9)

# The flags of a record.
ENTERED, DONE, CLOSED, FAILED, LEFT = 1, 2, 4, 8, 16

CONTROL, REPAIR = 1 << 31, 1 << 30
INDEX_MASK = REPAIR - 1
CHANNEL_MASK = (1 << 64) - (1 << 16)
NONE = (1 << 32) - 1  # no rank
HEADER_BYTES = 16

_HEADER = struct.Struct(">QII")
# From the stamp to the late rank's age.
_MESSAGE = struct.Struct(">II4BIIQQIIIIIQII")
_ETHERNET = struct.Struct(">6s6sH")
_IP = struct.Struct(">BBHHHBBH4s4s")
_UDP = struct.Struct(">HHHH")
_IPV4 = 0x0800
_DO_NOT_FRAGMENT = 0x4000


@dataclass(frozen=True)
class Header:
    """The header of a datagram; the channel's low 16 bits are clear."""

    channel: int
    epoch: int
    index: int


class Datagram(NamedTuple):
    """A datagram and its addresses, as pairs of an IPv4 address and a port."""

    source: tuple[str, int]
    to: tuple[str, int]
    payload: bytes
    source_mac: bytes = b""


def checksum(header: Header, nbytes: int) -> int:
    """Return the header's checksum in a datagram of `nbytes`."""
    x = header.channel ^ (header.epoch << 32 | header.index) ^ nbytes
    x ^= x >> 32
    return (x ^ x >> 16) & 0xFFFF


def encode(header: Header, body: bytes, seal: bytes = b"") -> bytes:
    """Return a datagram, with the checksum that CHECKSUM=header asks for.

    `seal` is what protection puts behind the header; its checksum does not count that.
    """
    folded = checksum(header, HEADER_BYTES + len(body))
    head = _HEADER.pack(header.channel | folded, header.epoch, header.index)
    return head + seal + body


def seal_bytes(datagram: bytes) -> int:
    """Return how many bytes protection has put into a datagram."""
    folded = int.from_bytes(datagram[6:8], "big")
    return len(datagram) - (folded ^ checksum(peek(datagram), 0))


def peek(datagram: bytes) -> Header:
    """Return the header of a datagram, without checking anything."""
    channel, epoch, index = _HEADER.unpack_from(datagram)
    return Header(channel & CHANNEL_MASK, epoch, index)


def message(flags: int, items: bytes = b"", nitems: int = 0, failure: int = 0) -> bytes:
    """Return the body of a control message, whose terms bind nobody."""
    fields = (0, 0, flags, 20, 20, failure, 1 if failure else NONE, 1 << 20)
    terms = (NONE << 32 | NONE, 0, NONE, 0, 0)
    return _MESSAGE.pack(*fields, *terms, nitems, NONE, 0, NONE, 0) + items


def runs(*pairs: tuple[int, int]) -> bytes:
    """Return runs of chunks, each by its first chunk and their number."""
    return b"".join(struct.pack(">II", *pair) for pair in pairs)


# ---- frames ------------------------------------------------------------------


@functools.cache
def _around(
    source: tuple[str, int], to: tuple[str, int], nbytes: int, macs: bytes
) -> bytes:
    """Return what stands before a datagram of `nbytes` in a frame.

    `macs` are the receiver's and the sender's addresses in the Ethernet.
    """
    fields = (0x45, 0, 28 + nbytes, 0, _DO_NOT_FRAGMENT, 1, socket.IPPROTO_UDP)
    ends = (socket.inet_aton(source[0]), socket.inet_aton(to[0]))
    total = sum(struct.unpack(">10H", _IP.pack(*fields, 0, *ends)))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    ip = _IP.pack(*fields, ~total & 0xFFFF, *ends)
    # A checksum of 0 says that there is none.
    udp = _UDP.pack(source[1], to[1], 8 + nbytes, 0)
    return _ETHERNET.pack(macs[:6], macs[6:], _IPV4) + ip + udp


def group_mac(group: str) -> bytes:
    """Return the Ethernet's address of a multicast group (RFC 1112, 6.4)."""
    low = int.from_bytes(socket.inet_aton(group), "big") & 0x7FFFFF
    return (0x01005E000000 | low).to_bytes(6, "big")


def frame(datagram: Datagram, to_mac: bytes, own_mac: bytes) -> bytes:
    """Return the frame that carries a datagram, from the sender `own_mac`."""
    nbytes = len(datagram.payload)
    around = _around(datagram.source, datagram.to, nbytes, to_mac + own_mac)
    return around + datagram.payload


def unframe(raw: bytes, segment_bytes: int = 0) -> Iterator[Datagram]:
    """Yield the datagrams in a frame, which may have a train of them.

    Those of a train but the last are `segment_bytes` long. A frame without UDP over
    IPv4 has none.
    """
    if len(raw) < _ETHERNET.size + _IP.size + _UDP.size:
        return
    *_, kind = _ETHERNET.unpack_from(raw)
    ip = _IP.unpack_from(raw, _ETHERNET.size)
    at = _ETHERNET.size + 4 * (ip[0] & 15)
    if kind != _IPV4 or ip[6] != socket.IPPROTO_UDP:
        return
    from_port, to_port, *_ = _UDP.unpack_from(raw, at)
    payload = raw[at + _UDP.size : _ETHERNET.size + ip[2]]
    source = (socket.inet_ntoa(ip[8]), from_port)
    to = (socket.inet_ntoa(ip[9]), to_port)
    step = segment_bytes or len(payload) or 1
    for begin in range(0, len(payload), step):
        yield Datagram(source, to, payload[begin : begin + step], raw[6:12])
