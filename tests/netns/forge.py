# SPDX-License-Identifier: BSD-3-Clause
"""Send forged datagrams into a job's group from a host that is not in the job.

Started as ``python forge.py FOLDER GROUP PORT SOURCE COUNT SEED``. Most datagrams look
as if they came from SOURCE, a rank's address; every sixth has this host's address.
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

# The header of a datagram: channel, epoch and index. The index's upper two bits are the
# datagram's kind: 0 is a chunk, 1 a repair.
_HEADER = struct.Struct(">QII")
_KIND_MASK = 3 << 30
_SAMPLES = 50
_LIMIT_S = 20

# A datagram as a rank sent it, and its source port.
Heard = tuple[bytes, int]


def listen(folder: Path, group: str, port: int, source: str) -> list[Heard]:
    """Join the group, and return the first chunks that SOURCE then multicasts."""
    heard: list[Heard] = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
        receiver.bind((group, port))
        receiver.settimeout(_LIMIT_S)
        membership = socket.inet_aton(group) + own_address()
        receiver.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, membership)
        (folder / "listening").touch()
        while len(heard) < _SAMPLES:
            datagram, (address, from_port) = receiver.recvfrom(65536)
            is_chunk = _HEADER.unpack_from(datagram)[2] & _KIND_MASK == 0
            if address == source and is_chunk:
                heard.append((datagram, from_port))
    return heard


def own_address() -> bytes:
    """Return this host's IPv4 address in network order."""
    return socket.inet_aton(socket.gethostbyname(socket.gethostname()))


# ---- forgeries ---------------------------------------------------------------


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
    """Return the datagram with an index out of range, or of no kind that exists."""
    channel, epoch, _ = _HEADER.unpack_from(datagram)
    kind = random.choice((0, 1 << 30, 3 << 30))
    index = kind | random.randrange(1 << 20, 1 << 30)
    return _HEADER.pack(channel, epoch, index) + datagram[_HEADER.size :]


def cut(datagram: bytes) -> bytes:
    """Return the beginning of the datagram."""
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
    """Return an IPv4 packet with the payload, as if from `source` and `from_port`.

    The kernel fills in the IP header's length, identification and checksum.
    """
    udp = struct.pack(">HHHH", from_port, to[1], 8 + len(payload), 0)
    ip = struct.pack(
        ">BBHHHBBH4s4s",
        *(0x45, 0, 0, 0, 0, 1, socket.IPPROTO_UDP, 0),
        *(socket.inet_aton(source), socket.inet_aton(to[0])),
    )
    return ip + udp + payload


def main() -> None:
    """Collect chunks that SOURCE multicasts, then send forgeries of them to GROUP."""
    folder, group, port, source, count, seed = sys.argv[1:]
    random.seed(int(seed))
    to = (group, int(port))
    heard = listen(Path(folder), group, int(port), source)
    raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
    plain = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    for sender in (raw, plain):
        sender.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, own_address())
    sent: Counter[str] = Counter()
    nkinds = len(FORGERS) + 1
    for number in range(int(count)):
        datagram, from_port = random.choice(heard)
        if number % nkinds == len(FORGERS):
            plain.sendto(datagram, to)
            sent["own address"] += 1
            continue
        forge = FORGERS[number % nkinds]
        raw.sendto(disguised(forge(datagram), source, from_port, to), to)
        sent[forge.__name__] += 1
    print(json.dumps(sent))


if __name__ == "__main__":
    main()
