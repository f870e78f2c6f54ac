# SPDX-License-Identifier: BSD-3-Clause
"""Send forged datagrams into a job's group from a host that is not in the job.

Started as ``python forge.py FOLDER GROUP PORT SOURCE COUNT SEED``. Most datagrams look
as if they came from SOURCE, a rank's address; every sixth has this host's own address.
The program makes FOLDER/listening once it has joined the group, and prints how many
datagrams of each kind it sent.
"""

from __future__ import annotations

import json
import random
import socket
import struct
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

_HEADER = struct.Struct(">QII")
_SAMPLES = 50
_LIMIT_S = 20
_INDEX_KINDS = 3 << 30

# A datagram as a rank sent it, and its source port.
Heard = tuple[bytes, int]


def listen(folder: Path, group: str, port: int, source: str) -> list[Heard]:
    """Join the group; return some chunks that SOURCE multicasts."""
    heard: list[Heard] = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
        receiver.bind((group, port))
        receiver.settimeout(_LIMIT_S)
        own = next(iter(_own_addresses()))
        membership = socket.inet_aton(group) + socket.inet_aton(own)
        receiver.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, membership)
        (folder / "listening").touch()
        while len(heard) < _SAMPLES:
            datagram, (address, from_port) = receiver.recvfrom(65536)
            is_chunk = _HEADER.unpack_from(datagram)[2] & _INDEX_KINDS == 0
            if address == source and is_chunk:
                heard.append((datagram, from_port))
    return heard


def _own_addresses() -> list[str]:
    return [socket.gethostbyname(socket.gethostname())]


# ---- what is forged ----------------------------------------------------------


def replayed(datagram: bytes) -> bytes:
    """Return the datagram unchanged."""
    return datagram


def other_channel(datagram: bytes) -> bytes:
    """Return the datagram with the channel of another stream."""
    channel, epoch, index = _HEADER.unpack_from(datagram)
    channel ^= random.randrange(1, 1 << 48) << 16
    return _HEADER.pack(channel, epoch, index) + datagram[_HEADER.size :]


def other_epoch(datagram: bytes) -> bytes:
    """Return the datagram with an epoch long past or far in the future."""
    channel, epoch, index = _HEADER.unpack_from(datagram)
    epoch = (epoch + random.randrange(1000, (1 << 32) - 1000)) % (1 << 32)
    return _HEADER.pack(channel, epoch, index) + datagram[_HEADER.size :]


def other_index(datagram: bytes) -> bytes:
    """Return the datagram as a chunk or repair out of range, or of no known kind."""
    channel, epoch, _ = _HEADER.unpack_from(datagram)
    kind = random.choice((0, 1 << 30, 3 << 30))
    index = kind | random.randrange(1 << 20, 1 << 30)
    return _HEADER.pack(channel, epoch, index) + datagram[_HEADER.size :]


def cut(datagram: bytes) -> bytes:
    """Return the datagram truncated."""
    return datagram[: random.randrange(len(datagram) - 1)]


FORGERS: tuple[Callable[[bytes], bytes], ...] = (
    replayed,
    other_channel,
    other_epoch,
    other_index,
    cut,
)


# ---- sending -----------------------------------------------------------------


def disguised(
    payload: bytes, source: str, from_port: int, to: tuple[str, int]
) -> bytes:
    """Return an IPv4 packet from `source`; the kernel adds length, id and checksum."""
    udp = struct.pack(">HHHH", from_port, to[1], 8 + len(payload), 0)
    ip = struct.pack(
        ">BBHHHBBH4s4s",
        *(0x45, 0, 0, 0, 0, 1, socket.IPPROTO_UDP, 0),
        *(socket.inet_aton(source), socket.inet_aton(to[0])),
    )
    return ip + udp + payload


def main() -> None:
    """Collect chunks that SOURCE multicasts, then send forgeries of them."""
    folder, group, port, source, count, seed = sys.argv[1:]
    random.seed(int(seed))
    to = (group, int(port))
    heard = listen(Path(folder), group, int(port), source)
    raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
    plain = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    for sender in (raw, plain):
        via = socket.inet_aton(_own_addresses()[0])
        sender.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, via)
    sent: Counter[str] = Counter()
    for number in range(int(count)):
        datagram, from_port = random.choice(heard)
        if number % 6 == 5:
            plain.sendto(datagram, to)
            sent["own address"] += 1
            continue
        forge = FORGERS[number % 6]
        raw.sendto(disguised(forge(datagram), source, from_port, to), to)
        sent[forge.__name__] += 1
    print(json.dumps(sent))


if __name__ == "__main__":
    main()
