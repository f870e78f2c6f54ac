# SPDX-License-Identifier: BSD-3-Clause
"""Send datagrams from one host to another: the programs of both ends.

``receive ADDRESS COUNT`` prints its port, and then the numbers of the first COUNT
datagrams that arrive; it answers each. ``send ADDRESS PORT COUNT`` sends COUNT numbered
ones, waits for an answer, and prints the seconds from the first datagram to the answer.
"""

from __future__ import annotations

import socket
import sys
import time

LIMIT_S = 60
PAUSE_S = 0.001
BYTES = 1000
SO_RCVBUFFORCE = 33  # which the module does not name
BUFFER_BYTES = 64 << 20
AT_ONCE = 8  # what an idle queue takes without delay


def receive(address: str, count: str) -> None:
    """Print and answer the numbers that arrive."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as ours:
        # However late this program is, what arrives waits for it.
        ours.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, BUFFER_BYTES)
        ours.bind((address, 0))
        ours.settimeout(LIMIT_S)
        print(ours.getsockname()[1], flush=True)
        for _ in range(int(count)):
            datagram, peer = ours.recvfrom(BYTES)
            print(datagram.split()[0].decode())
            ours.sendto(b"answer", peer)


def send(address: str, port: str, count: str) -> None:
    """Send numbers; print when the first answer came."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as ours:
        ours.connect((address, int(port)))
        ours.settimeout(LIMIT_S)
        begin_s = time.monotonic()
        for number in range(int(count)):
            if number % AT_ONCE == AT_ONCE - 1:
                time.sleep(PAUSE_S)
            ours.send(b"%d ".ljust(BYTES, b".") % number)
        ours.recv(BYTES)
        print(time.monotonic() - begin_s)


if __name__ == "__main__":
    {"receive": receive, "send": send}[sys.argv[1]](*sys.argv[2:])
