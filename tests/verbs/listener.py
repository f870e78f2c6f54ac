# SPDX-License-Identifier: BSD-3-Clause
"""Receive in a job's group with pyverbs alone, without any code of mpimcast.

Started as ``python listener.py ADDRESS GROUP NRANKS NBYTES CHUNK_BYTES FIRST`` in the
folder of a job of keyed.py, on the device that has ADDRESS. The job's Q_Key must be the
connection manager's, which pyverbs cannot change. The listener makes the file
`listening` once it has joined the group. When a file `over` appears, it checks the
datagrams that it received of the operations from number FIRST on, whose blocks have
NBYTES, and prints as JSON:

chunks, twice
    How many chunks have arrived, and how many of them more than once.
wrong
    How many chunks have a wrong payload, rank or operation; absent if none has.
other immediate
    How many datagrams have an immediate that is not their index; absent if none has.
other
    How many control messages and repairs have arrived; absent if none has.
queues
    The rank, address and queue pair of each source.
channels
    How many different channels there were.
"""

from __future__ import annotations

import json
import socket
import struct
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pyverbs.cm_enums
import pyverbs.enums
from pattern import pattern
from pyverbs.cmid import CMID, AddrInfo, CMEvent, CMEventChannel
from pyverbs.cq import CQ
from pyverbs.mr import MR
from pyverbs.qp import QPCap, QPInitAttr

_RECEIVES = 600  # more than the job's chunks and control messages
# The device writes a global routing header before each datagram. With IPv4 its second
# half is the IP header, so the source address is at 20 + 12.
_ROUTE_BYTES = 40
_SLOT_BYTES = _ROUTE_BYTES + 4096
_IPV4_SOURCE = 32
_HEADER = struct.Struct(">QII")  # channel, epoch, index
_POLL_S = 0.01


class Listener:
    """A queue pair on the device with an address, attached to a multicast group."""

    def __init__(self, address: str, group: str) -> None:
        ud = pyverbs.cm_enums.RDMA_PS_UDP
        self._events = CMEventChannel()
        self._id = CMID(creator=self._events, port_space=ud)
        self._id.bind_addr(AddrInfo(src=address, port_space=ud))
        self._id.resolve_addr(AddrInfo(src=address, dst=group, port_space=ud))
        self._await(pyverbs.cm_enums.RDMA_CM_EVENT_ADDR_RESOLVED)
        self._queue = CQ(self._id.context, _RECEIVES)
        self._id.create_qp(
            QPInitAttr(
                qp_type=pyverbs.enums.IBV_QPT_UD,
                cap=QPCap(1, _RECEIVES, 1, 1),
                scq=self._queue,
                rcq=self._queue,
            )
        )
        self._slots = [
            MR(self._id.pd, _SLOT_BYTES, pyverbs.enums.IBV_ACCESS_LOCAL_WRITE)
            for _ in range(_RECEIVES)
        ]
        for slot in self._slots:
            self._id.post_recv(slot)
        self._id.join_multicast(addr=AddrInfo(src=group, dst=group, port_space=ud))
        self._await(pyverbs.cm_enums.RDMA_CM_EVENT_MULTICAST_JOIN)

    def _await(self, kind: int) -> None:
        """Wait for the connection manager's next event; check that it is of a kind."""
        event = CMEvent(self._events)
        assert event.event_type == kind, event.event_str()
        event.ack_cm_event()

    def received(self) -> list[tuple[Any, bytes]]:
        """Return all completions, each with the bytes of its route and datagram."""
        found = []
        while True:
            count, some = self._queue.poll(num_entries=32)
            found += some
            if count == 0:
                break
        # Receives complete in the order in which they were posted.
        return [
            (completion, slot.read(completion.byte_len, 0))
            for completion, slot in zip(found, self._slots, strict=False)
        ]


def check(
    received: list[tuple[Any, bytes]],
    nranks: int,
    nbytes: int,
    chunk_bytes: int,
    first: int,
) -> dict[str, Any]:
    """Compare received datagrams with the ranks' data; return what is to be printed."""
    seen: Counter[str] = Counter()
    chunks: Counter[tuple[int, int]] = Counter()
    queues = set()
    channels = set()
    for completion, datagram in received:
        assert completion.status == pyverbs.enums.IBV_WC_SUCCESS
        channel, epoch, index = _HEADER.unpack_from(datagram, _ROUTE_BYTES)
        # pyverbs leaves the immediate in network order.
        if socket.ntohl(completion.imm_data) != index:
            seen["other immediate"] += 1
        if index >> 30:
            seen["other"] += 1
            continue
        rank, part = divmod(index, -(-nbytes // chunk_bytes))
        chunks[epoch, index] += 1
        source = socket.inet_ntoa(datagram[_IPV4_SOURCE : _IPV4_SOURCE + 4])
        queues.add((rank, source, completion.src_qp))
        # The low 16 bits of the channel are a checksum.
        channels.add(channel >> 16)
        op = epoch - 1
        begin = part * chunk_bytes
        want = pattern(rank, op, nbytes)[begin : begin + chunk_bytes].tobytes()
        payload = datagram[_ROUTE_BYTES + _HEADER.size :]
        if payload != want or rank >= nranks or op < first:
            seen["wrong"] += 1
    return {
        **seen,
        "chunks": len(chunks),
        "twice": sum(count > 1 for count in chunks.values()),
        "queues": sorted(queues),
        "channels": len(channels),
    }


def main() -> None:
    """Listen until the job has ended, then print the counts."""
    address, group, *numbers = sys.argv[1:]
    listener = Listener(address, group)
    Path("listening").touch()
    while not Path("over").exists():
        time.sleep(_POLL_S)
    print(json.dumps(check(listener.received(), *map(int, numbers))))


if __name__ == "__main__":
    main()
