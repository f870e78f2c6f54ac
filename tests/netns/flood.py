# SPDX-License-Identifier: BSD-3-Clause
"""Flood a job's group with junk, from a host that is not in the job.

Started as ``python flood.py FOLDER GROUP PORT SOURCE COUNT SEED``. A datagram
names another channel, or it names the job's and has nonsense behind it; half of either
come from this host's address, and half seem to come from that of SOURCE, a rank. The
program makes FOLDER/listening once it has joined the group, and FOLDER/flooding once it
has heard a channel. It prints how many datagrams it sent, and how long that took.
"""

from __future__ import annotations

import json
import random
import socket
import sys
import time
from pathlib import Path

import forge

_NSAMPLES = 997  # of each kind, made beforehand


def nonsense(datagram: bytes) -> bytes:
    """Return a datagram of the same channel, with random bytes behind it."""
    return datagram[:6] + random.randbytes(random.randrange(10, 1400))


def main() -> None:
    """Hear the job's channel, then send junk as fast as this host can."""
    folder, group, port, source, count, seed = sys.argv[1:]
    random.seed(int(seed))
    to = (group, int(port))
    heard = forge.listen(Path(folder), group, int(port), source)
    raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
    plain = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    for sender in (raw, plain):
        sender.setsockopt(
            socket.IPPROTO_IP, socket.IP_MULTICAST_IF, forge.own_address()
        )
    junk = []
    for _ in range(_NSAMPLES):
        datagram, from_port = random.choice(heard)
        for disguises in (False, True):
            for spoil in (forge.other_channel, nonsense):
                payload = spoil(datagram)
                if disguises:
                    packet = forge.disguised(payload, source, from_port, to)
                    junk.append((raw, packet))
                else:
                    junk.append((plain, payload))
    (Path(folder) / "flooding").touch()
    begin_s = time.monotonic()
    for number in range(int(count)):
        sender, packet = junk[number % len(junk)]
        sender.sendto(packet, to)
    print(json.dumps({"sent": int(count), "seconds": time.monotonic() - begin_s}))


if __name__ == "__main__":
    main()
