# SPDX-License-Identifier: BSD-3-Clause
"""Send forged datagrams to a job's group from a device that is not in the job.

Started as ``python stranger.py FOLDER INTERFACE SOURCE COUNT SEED``. The program
listens on the Ethernet to learn the group, Q_Key and queue pair of the rank at SOURCE,
then sends COUNT datagrams, most of which look as if they came from that rank. It makes
FOLDER/listening when it starts to listen, and prints how many datagrams of each kind
it has sent.
"""

from __future__ import annotations

import dataclasses
import json
import random
import socket
import struct
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from forge import FORGERS
from roce import Datagram

_SAMPLES = 50
_LIMIT_S = 20
_HEADER_BYTES = 16
_KIND_MASK = 3 << 30  # the upper two bits of an index; 0 is a chunk
_ETH_P_ALL = 3

# Datagrams in a burst, and the pause after it. With short bursts no queue gets full, so
# every datagram arrives and is counted.
_BURST = 16
_PAUSE_S = 0.002


def listen(line: socket.socket, source: str) -> list[Datagram]:
    """Return the next chunks that SOURCE multicasts."""
    heard: list[Datagram] = []
    line.settimeout(_LIMIT_S)
    while len(heard) < _SAMPLES:
        datagram = Datagram.read(line.recv(65536))
        if datagram is None or datagram.source != source:
            continue
        payload = datagram.payload
        assert Datagram.read(datagram.frame()) == datagram
        if len(payload) > _HEADER_BYTES:
            (index,) = struct.unpack_from(">I", payload, _HEADER_BYTES - 4)
            assert datagram.immediate == index
            if index & _KIND_MASK == 0:
                heard.append(datagram)
    return heard


# ---- forgeries ---------------------------------------------------------------


def own_address(datagram: Datagram) -> Datagram:
    """Return the datagram with a source address that no rank has."""
    return dataclasses.replace(datagram, source="10.8.0.99")


def other_queue(datagram: Datagram) -> Datagram:
    """Return the datagram as if from another queue pair of the same device."""
    return dataclasses.replace(datagram, qpn=datagram.qpn ^ 0x4000)


def other_key(datagram: Datagram) -> Datagram:
    """Return the datagram with another Q_Key, which every device rejects."""
    return dataclasses.replace(datagram, qkey=datagram.qkey ^ 1)


def _forger(forge: Callable[[bytes], bytes]) -> Callable[[Datagram], Datagram]:
    """Return a function that applies a forger of forge.py to a datagram's payload."""

    def changed(datagram: Datagram) -> Datagram:
        return dataclasses.replace(datagram, payload=forge(datagram.payload))

    changed.__name__ = forge.__name__
    return changed


KINDS = [*map(_forger, FORGERS), own_address, other_queue, other_key]


def main() -> None:
    """Collect chunks that SOURCE multicasts, then send forgeries to the same group."""
    folder, interface, source, count, seed = sys.argv[1:]
    random.seed(int(seed))
    line = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ETH_P_ALL))
    line.bind((interface, _ETH_P_ALL))
    (Path(folder) / "listening").touch()
    # With the rank's Ethernet address as the source, the switch would learn to forward
    # the rank's traffic to this device.
    own_mac = line.getsockname()[4]
    heard = [
        dataclasses.replace(each, from_mac=own_mac) for each in listen(line, source)
    ]
    sent: Counter[str] = Counter()
    for number in range(int(count)):
        kind = KINDS[number % len(KINDS)]
        line.send(kind(random.choice(heard)).frame())
        sent[kind.__name__] += 1
        if number % _BURST == 0:
            time.sleep(_PAUSE_S)
    print(json.dumps(sent))


if __name__ == "__main__":
    main()
