# SPDX-License-Identifier: BSD-3-Clause
"""Read and write RoCE v2 datagrams as Ethernet frames, byte by byte."""

from __future__ import annotations

import dataclasses
import socket
import struct
import zlib

from typing_extensions import Self

_ETHERNET = struct.Struct(">6s6sH")
_IP = struct.Struct(">BBHHHBBH4s4s")
_UDP = struct.Struct(">HHHH")
# BTH: opcode, flags, P_Key, destination queue pair, packet sequence number.
_BASE = struct.Struct(">BBHII")
_DATAGRAM = struct.Struct(">II")  # DETH: Q_Key, source queue pair
_IMMEDIATE = struct.Struct(">I")
_CHECK = struct.Struct("<I")  # the invariant CRC

_IPV4 = 0x0800
_PORT = 4791  # the UDP port of RoCE v2
_SEND_ONLY_WITH_IMMEDIATE = 0x65  # unreliable datagram
_QPN_MASK = 0xFFFFFF


@dataclasses.dataclass
class Datagram:
    """A datagram that carries an immediate.

    Attributes
    ----------
    to_mac, from_mac : bytes
        The Ethernet addresses.
    source, group : str
        The IPv4 addresses: the source that it claims, and its destination.
    udp_port : int
        The UDP source port.
    pkey, qkey : int
        The P_Key and the Q_Key.
    to_qpn : int
        The number of the queue pair to which it is sent.
    number : int
        The packet sequence number.
    qpn : int
        The number of the queue pair from which it claims to come.
    immediate : int
        The immediate, which is the index of mpimcast's header.
    payload : bytes
        What it carries: mpimcast's datagram.
    """

    to_mac: bytes
    from_mac: bytes
    source: str
    group: str
    udp_port: int
    pkey: int
    to_qpn: int
    number: int
    qkey: int
    qpn: int
    immediate: int
    payload: bytes

    @classmethod
    def read(cls, frame: bytes) -> Self | None:
        """Return the datagram in an Ethernet frame, or None if there is none."""
        to_mac, from_mac, kind = _ETHERNET.unpack_from(frame)
        at = _ETHERNET.size
        if kind != _IPV4 or len(frame) < at + _IP.size + _UDP.size + _BASE.size:
            return None
        ip = _IP.unpack_from(frame, at)
        at += _IP.size
        udp_port, port, nbytes, _ = _UDP.unpack_from(frame, at)
        end = at + nbytes - _CHECK.size
        at += _UDP.size
        opcode, flags, pkey, to_qpn, number = _BASE.unpack_from(frame, at)
        at += _BASE.size
        if ip[6] != socket.IPPROTO_UDP or port != _PORT:
            return None
        if opcode != _SEND_ONLY_WITH_IMMEDIATE:
            return None
        qkey, qpn = _DATAGRAM.unpack_from(frame, at)
        at += _DATAGRAM.size
        (immediate,) = _IMMEDIATE.unpack_from(frame, at)
        at += _IMMEDIATE.size
        return cls(
            to_mac=to_mac,
            from_mac=from_mac,
            source=socket.inet_ntoa(ip[8]),
            group=socket.inet_ntoa(ip[9]),
            udp_port=udp_port,
            pkey=pkey,
            to_qpn=to_qpn & _QPN_MASK,
            number=number & _QPN_MASK,
            qkey=qkey,
            qpn=qpn & _QPN_MASK,
            immediate=immediate,
            payload=frame[at : end - (flags >> 4 & 3)],
        )

    def frame(self) -> bytes:
        """Return the datagram as an Ethernet frame."""
        padding = -len(self.payload) % 4
        transport = [
            _BASE.pack(
                *(_SEND_ONLY_WITH_IMMEDIATE, padding << 4, self.pkey),
                *(self.to_qpn, self.number),
            ),
            _DATAGRAM.pack(self.qkey, self.qpn),
            _IMMEDIATE.pack(self.immediate),
            self.payload,
            bytes(padding),
        ]
        packet = b"".join(transport)
        udp_bytes = _UDP.size + len(packet) + _CHECK.size
        udp = _UDP.pack(self.udp_port, _PORT, udp_bytes, 0)
        ip = self._ip(_IP.size + udp_bytes, 0)
        check = _CHECK.pack(_invariant_crc(ip, udp, packet))
        ip = self._ip(_IP.size + udp_bytes, _internet_sum(ip))
        ethernet = _ETHERNET.pack(self.to_mac, self.from_mac, _IPV4)
        return ethernet + ip + udp + packet + check

    def _ip(self, nbytes: int, checksum: int) -> bytes:
        """Return the IP header of a packet of `nbytes` in all."""
        return _IP.pack(
            *(0x45, 0, nbytes, 0, 0x4000, 1, socket.IPPROTO_UDP, checksum),
            *(socket.inet_aton(self.source), socket.inet_aton(self.group)),
        )


def _internet_sum(header: bytes) -> int:
    """Return the checksum of an IP header whose checksum is 0 so far (RFC 1071)."""
    total = sum(struct.unpack(f">{len(header) // 2}H", header))
    total = (total & 0xFFFF) + (total >> 16)
    return ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF


def _invariant_crc(ip: bytes, udp: bytes, packet: bytes) -> int:
    """Return the CRC of a packet whose fields that routers may change are set to ones.

    Eight bytes of ones replace the header of a local route, which RoCE v2 lacks.
    """
    masked = [
        b"\xff" * 8,
        *(ip[:1], b"\xff", ip[2:8], b"\xff", ip[9:10], b"\xff\xff", ip[12:]),
        *(udp[:6], b"\xff\xff"),
        *(packet[:4], b"\xff", packet[5:]),
    ]
    return zlib.crc32(b"".join(masked))
