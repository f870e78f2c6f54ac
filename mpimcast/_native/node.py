# SPDX-License-Identifier: BSD-3-Clause
"""Nodes, whose ranks share memory, and the streams of operations in it."""

from __future__ import annotations

import os
from collections import Counter
from typing import TYPE_CHECKING

from mpimcast._core import ffi, lib
from mpimcast._native.calls import Calls, UnicastReason
from mpimcast._native.core import NODE_COUNTERS, check, last_error, nanoseconds
from mpimcast._native.operation import SLICE_NS
from mpimcast._native.stream import DESERTIONS
from mpimcast._native.words import Words

if TYPE_CHECKING:
    from collections.abc import Callable

    from mpimcast._core import _CData as CData
    from mpimcast._native.calls import Notifications as AnyNotifications
    from mpimcast._native.layout import Place, Slots
    from mpimcast._native.stream import Stream
    from mpimcast._settings.config import Config

# The beginning of a segment, which is the C library's own.
HEAD_BYTES = lib.MMC_NODE_HEAD_BYTES

# The most slots that a stream may have.
SLOTS_MAX = lib.MMC_NODE_SLOTS_MAX

# How long a waiting member looks for news, and yields, before it sleeps: what it takes
# to be woken up, and for ranks to begin an operation after a pause. It does so once for
# each piece. Members that share a processor gain most by it.
_SPIN_NS = 100_000

# From this size on arrays have huge pages where NumPy or torch allocates them, so that
# the kernel copies from another process as fast as a process does itself.
_CROSS_BYTES_MIN = 4 << 20

_CALLS = Calls(
    request="struct mmc_node_request **",
    start=lib.mmc_node_start,
    wait=lib.mmc_node_request_wait,
    ready=lib.mmc_node_request_ready,
    cancel=lib.mmc_node_request_cancel,
    free=lib.mmc_node_request_free,
    failure=lib.mmc_node_request_failure,
    waiting=lib.mmc_node_request_waiting,
    wait_range=lib.mmc_node_request_wait_range,
    wait_block=lib.mmc_node_request_wait_block,
    tell_blocks=lib.mmc_node_request_tell_blocks,
    present=lib.mmc_node_request_present,
    stream_failure=lib.mmc_node_stream_failure,
    names=("mmc_node_start", "mmc_node_request_cancel", "mmc_node_request_free"),
    set_trace=lib.mmc_node_stream_set_trace,
)


def stream_bytes(nmembers: int, slots: Slots) -> int:
    """Return the bytes of a segment that a stream with such slots takes."""
    return int(lib.mmc_node_stream_bytes(nmembers, slots.number, slots.nbytes))


class Node:
    """This rank's view of the segment of its node.

    A child of fork() must close neither the node nor its streams.

    Parameters
    ----------
    fd
        The segment's descriptor, which is the node's own from here on.
    nbytes
        The segment's bytes.
    member, nmembers
        This rank's number on the node, and how many there are.
    """

    def __init__(self, fd: int, nbytes: int, member: int, nmembers: int) -> None:
        made = ffi.new("struct mmc_node **")
        status = lib.mmc_node_open(fd, nbytes, member, nmembers, made)
        if status < 0:
            os.close(fd)
        check(status, f"cannot map NODE_BYTES={nbytes} of shared memory")
        self.c = made[0]
        self.fd = fd
        self.nmembers = nmembers

    def why_unreadable(self) -> str:
        """Return why this rank cannot read another member's own memory, or "".

        All members must have opened the node.
        """
        status = lib.mmc_node_try_attach(self.c, ffi.new("uint32_t *"))
        return last_error() if status < 0 else ""

    def notifications(self) -> Notifications:
        """Return notifications of the node's operations."""
        return Notifications(self)

    def close(self) -> None:
        """Unmap the segment. Its streams must have been closed before."""
        lib.mmc_node_close(self.c)


class Notifications:
    """Notifications that other members have moved operations, which a thread awaits."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._nrings = ffi.new("uint32_t *")

    def wait(self) -> None:
        """Sleep until something has happened since the last call, or until `rouse`."""
        status = lib.mmc_node_await(self._node.c, self._nrings)
        check(status, "cannot wait for the ranks of this node")

    def rouse(self) -> None:
        """Wake the thread that sleeps in `wait`; if none does, end the next wait."""
        lib.mmc_node_rouse(self._node.c)

    def close(self) -> None:
        """Do nothing: the node stays open for others."""


class NodeStream:
    """A sequence of operations between ranks of which some share memory.

    Parameters
    ----------
    node
        This rank's node.
    config
        The settings.
    channel
        The stream's name, equal on all ranks.
    place
        Where it lies, and its ranks.
    between
        On node leaders, if there are several nodes, the stream between the nodes on
        their rail. This stream closes it.
    """

    calls = _CALLS
    words = Words()

    def __init__(
        self,
        node: Node,
        config: Config,
        channel: int,
        place: Place,
        between: Stream | None = None,
    ) -> None:
        layout = place.layout
        nodes = ffi.new("uint32_t[]", layout.nodes)
        leaders = ffi.new(
            "uint32_t[]", [rank for rail in layout.rails for rank in rail]
        )
        options = ffi.new(
            "struct mmc_node_stream_options *",
            {
                "offset_bytes": place.offset_bytes,
                "slot_bytes": place.slots.nbytes,
                "nslots": place.slots.number,
                "rank": place.rank,
                "nranks": len(layout.nodes),
                "nnodes": layout.nnodes,
                "nrails": len(layout.rails),
                "nodes": nodes,
                "leaders": leaders,
                "between": ffi.NULL if between is None else between.c,
                "spin_ns": _SPIN_NS,
                "slice_ns": SLICE_NS,
                "entry_timeout_ns": nanoseconds(config.entry_timeout),
                "late_timeout_ns": nanoseconds(config.late_timeout),
            },
        )
        made = ffi.new("struct mmc_node_stream **")
        check(
            lib.mmc_node_stream_create(node.c, options, made),
            "cannot create a stream in the memory of a node",
        )
        self.c = made[0]
        self.channel = channel
        self.rank, self.nranks = place.rank, len(layout.nodes)
        self.config = config
        self.between = between
        self.sources: tuple[Callable[[], AnyNotifications], ...] = (
            node.notifications,
            *(between.sources if between is not None else ()),
        )
        self.first_failure: tuple[str, tuple[int, ...]] | None = None
        self.layout = layout

    def populate(self) -> None:
        """Map a small stream's memory; all ranks of the node have created it."""
        lib.mmc_node_stream_populate(self.c)

    def begin_cross_reads(self) -> None:
        """Let two ranks of a node read large blocks from each other's own memory.

        Both call this before the first operation, or none.
        """
        lib.mmc_node_stream_set_cross(self.c, _CROSS_BYTES_MIN)

    def counters(self) -> Counter[str]:
        """Return all counters by name."""
        counts = ffi.new("struct mmc_node_counts *")
        lib.mmc_node_stream_counts(self.c, counts)
        total = Counter(
            {name: getattr(counts, name.partition("_")[2]) for name in NODE_COUNTERS}
        )
        if self.between is not None:
            total.update(self.between.counters())
        return total

    def failure(self) -> CData:
        """Return C's struct mmc_failure of the first failure; `error` 0 for none."""
        failure = ffi.new("struct mmc_failure *")
        self.calls.stream_failure(self.c, failure)
        return failure

    def poisoned(self) -> bool:
        """Return whether an operation of the stream has failed."""
        return bool(self.failure().error)

    def deserted(self) -> bool:
        """Return whether an operation failed because some rank no longer answers."""
        return self.failure().error in DESERTIONS

    def how_gone(self, rank: int) -> str:
        """Return how this rank knows that a rank's process has ended."""
        if rank >= self.nranks:
            return ""
        members = self.layout.members(rank)
        if self.rank in members:
            return ": the kernel has released what it held"
        if len(members) > 1:
            return ", or that of another rank of its node"
        return ": its host refuses connections"

    def make_progress(self) -> None:
        """Make progress between nodes, where no thread of the C library does.

        Whoever tests an operation of this stream moves it within the node.
        """
        if self.between is not None:
            self.between.make_progress()

    def leave(self) -> None:
        """Tell the other ranks that this rank will start no further operation.

        Their operations that wait for this rank to enter then fail.
        """
        lib.mmc_node_stream_leave(self.c)
        if self.between is not None:
            self.between.leave()

    def multicast_is_suspended(self) -> bool:
        """Return whether multicast between nodes is suspended, as a leader sees it."""
        return self.between is not None and self.between.multicast_is_suspended()

    def unicast_reason(self) -> UnicastReason:
        """Return why multicast is suspended; `epoch` is 0 if it no longer is."""
        if self.between is None:
            return UnicastReason(0, 0, None)
        epoch, rank, sender = self.between.unicast_reason()
        if not epoch:
            return UnicastReason(0, 0, None)
        leaders = self.layout.rail(self.rank)
        return UnicastReason(
            epoch, leaders[rank], None if sender is None else leaders[sender]
        )

    def close(self) -> None:
        """Free the stream. No other rank may need this one's answers any more."""
        lib.mmc_node_stream_close(self.c)
        if self.between is not None:
            self.between.close()
