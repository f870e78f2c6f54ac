# SPDX-License-Identifier: BSD-3-Clause
"""Receive in a job's group with pyverbs alone, without any code of mpimcast.

Started as ``python listener.py ADDRESS GROUP NRANKS NBYTES CHUNK FIRST`` in the folder
of a job of keyed.py, on the device that has ADDRESS. The job's Q_Key has to be the
connection manager's, which pyverbs cannot change. The listener makes the file
`listening` once it has joined. When a file `over` appears, it checks what it received
of the operations from number FIRST on, with blocks of NBYTES, and prints counts as
JSON.
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

QKEY = 0x01234567  # RDMA_UDP_QKEY
_RECEIVES = 600
_SLOT_BYTES = 40 + 4096
_IPV4_SOURCE = 32
_HEADER = struct.Struct(">QII")
_POLL_S = 0.01


class Listener:
    """A queue pair that is attached to a multicast group."""

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
        event = CMEvent(self._events)
        assert event.event_type == kind, event.event_str()
        event.ack_cm_event()

    def received(self) -> list[tuple[Any, bytes]]:
        """Return completions, each with its routing header and datagram."""
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
    chunk: int,
    first: int,
) -> dict[str, Any]:
    """Count the chunks, and those among them that are wrong or arrive twice."""
    seen: Counter[str] = Counter()
    chunks: Counter[tuple[int, int]] = Counter()
    queues = set()
    channels = set()
    for completion, datagram in received:
        assert completion.status == pyverbs.enums.IBV_WC_SUCCESS
        channel, epoch, index = _HEADER.unpack_from(datagram, 40)
        # pyverbs leaves the immediate in network order.
        if socket.ntohl(completion.imm_data) != index:
            seen["other immediate"] += 1
        if index >> 30:
            seen["other"] += 1
            continue
        rank, part = divmod(index, -(-nbytes // chunk))
        chunks[epoch, index] += 1
        source = socket.inet_ntoa(datagram[_IPV4_SOURCE : _IPV4_SOURCE + 4])
        queues.add((rank, source, completion.src_qp))
        # The low 16 bits of the channel are a checksum.
        channels.add(channel >> 16)
        op = epoch - 1
        want = pattern(rank, op, nbytes)[part * chunk : (part + 1) * chunk].tobytes()
        if datagram[40 + _HEADER.size :] != want or rank >= nranks or op < first:
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
