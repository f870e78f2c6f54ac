# SPDX-License-Identifier: BSD-3-Clause
"""Meanings of the counters of ``Intracomm.stats()``; the C core counts most."""

from __future__ import annotations

from typing import NamedTuple


class Counter(NamedTuple):
    """One counter.

    Attributes
    ----------
    unit : str
        What it counts, in the plural.
    meaning : str
        A sentence.
    """

    unit: str
    meaning: str


def _traffic(kind: str, what: str) -> dict[str, Counter]:
    """Return the four counters of one kind of datagram."""
    return {
        f"{way}_{kind}_{unit}": Counter(unit, f"{unit.capitalize()} {done} {what}.")
        for way, done in (("tx", "sent"), ("rx", "received"))
        for unit in ("bytes", "datagrams")
    }


COUNTERS: dict[str, Counter] = {
    "epochs": Counter("operations", "Operations started through multicast."),
    "coded_epochs": Counter("operations", "Operations whose losses a code mended."),
    "unicast_epochs": Counter(
        "operations", "Operations whose blocks went round a ring by unicast."
    ),
    **_traffic("multicast", "in the first transmission of chunks"),
    **_traffic("repair", "in retransmissions of chunks"),
    **_traffic("control", "in control messages, such as barriers, reports and NAKs"),
    "parity_sent": Counter("chunks", "Parity chunks sent, with chunks or on request."),
    "parity_used": Counter("chunks", "Parity chunks from which lost ones were mended."),
    "groups_mended": Counter("groups", "Groups of chunks mended from parity."),
    "coder_mended": Counter("groups", "Groups mended by the coder, a thread."),
    "coder_encoded": Counter(
        "groups", "Groups whose parity the coder had computed when it was sent."
    ),
    "fell_back": Counter(
        "chunks", "Chunks requested with RELIABILITY=code, since parity was not enough."
    ),
    "rx_lost_chunks": Counter("chunks", "Chunks found lost, and requested or read."),
    "rx_repaired_chunks": Counter("chunks", "Lost chunks that were then repaired."),
    "rx_duplicate_chunks": Counter("chunks", "Chunks received again, and dropped."),
    "rx_corrupt_datagrams": Counter(
        "datagrams", "Datagrams dropped because their checksum was wrong."
    ),
    "rx_malformed_datagrams": Counter(
        "datagrams", "Datagrams dropped because their length or a field was impossible."
    ),
    "rx_forged_datagrams": Counter(
        "datagrams",
        "Datagrams dropped because their rank had not sealed them, see PROTECT.",
    ),
    "rx_replayed_datagrams": Counter(
        "datagrams",
        "Datagrams dropped because they had come before, or were too old to tell.",
    ),
    "rx_filtered_datagrams": Counter(
        "datagrams", "Datagrams the kernel dropped in floods: estimated from a sample."
    ),
    "rx_foreign_datagrams": Counter(
        "datagrams",
        "Datagrams dropped because no operation or rank here matched; summed over all "
        "communicators of these processes.",
    ),
    "rx_parked_datagrams": Counter(
        "datagrams", "Datagrams kept for an operation that had not started here."
    ),
    "rx_unparked_datagrams": Counter(
        "datagrams", "Such datagrams dropped for lack of room, to be repaired later."
    ),
    "rx_unkept_requests": Counter(
        "requests", "Early repair requests dropped for lack of room; they are repeated."
    ),
    "node_operations": Counter(
        "operations", "Operations started in memory that ranks of a node share."
    ),
    "node_pieces": Counter("pieces", "Pieces of such operations that were completed."),
    "node_tx_bytes": Counter("bytes", "Bytes copied into that memory."),
    "node_rx_bytes": Counter("bytes", "Bytes copied out of it."),
    "node_cross_bytes": Counter(
        "bytes", "Bytes copied out of the own memory of other ranks of the node."
    ),
    "node_sleeps": Counter(
        "sleeps", "Times that this rank slept to wait for ranks of its node."
    ),
    "trials_ours": Counter("calls", "Calls that tried mpimcast, to measure it."),
    "trials_ours_ns": Counter("nanoseconds", "Time in the calls that tried mpimcast."),
    "trials_mpi": Counter("calls", "Calls that tried the MPI library, to measure it."),
    "trials_mpi_ns": Counter(
        "nanoseconds", "Time in the calls that tried the MPI library."
    ),
    "calls_ours": Counter(
        "calls", "Blocking calls that mpimcast carried, besides trials."
    ),
    "calls_ours_ns": Counter("nanoseconds", "Time in the calls that mpimcast carried."),
    "calls_mpi": Counter(
        "calls", "Blocking calls that the MPI library carried, besides trials."
    ),
    "calls_mpi_ns": Counter(
        "nanoseconds", "Time in the calls that the MPI library carried."
    ),
    "calls_small": Counter(
        "calls",
        "Calls, of any form, that were the MPI library's by their size alone; they are "
        "not timed.",
    ),
    "open_ns": Counter("nanoseconds", "Time spent opening the communicator."),
    "open_messages": Counter(
        "messages",
        "Messages sent through the MPI library to open it, besides duplicating it.",
    ),
    "open_bytes": Counter("bytes", "Bytes in these messages."),
    "entry_ns": Counter(
        "nanoseconds", "Time in the entry barrier, until all ranks have entered."
    ),
    "multicast_ns": Counter(
        "nanoseconds", "Time after that until all chunks were received or found lost."
    ),
    "repair_ns": Counter(
        "nanoseconds", "Time after that until all chunks were in place."
    ),
    "release_ns": Counter(
        "nanoseconds", "Time after that until no other rank needed this one."
    ),
    "allocations": Counter(
        "allocations", "Memory allocations after the communicator was opened."
    ),
    "registrations": Counter(
        "registrations", "Memory registrations, for reads and direct placement."
    ),
    "adverts": Counter(
        "messages", "Memory advertisements sent to the right neighbour."
    ),
    "map_reads": Counter("reads", "RDMA reads of the left neighbour's chunk bitmap."),
    "reads": Counter("reads", "RDMA reads of the left neighbour's data."),
    "read_chunks": Counter("chunks", "Chunks that these reads brought."),
    "read_bytes": Counter("bytes", "Payload bytes in these chunks."),
    "failed_reads": Counter("reads", "RDMA reads that brought nothing of use."),
    "zero_copy_chunks": Counter("chunks", "Chunks received in place, without a copy."),
    "evacuated_chunks": Counter(
        "chunks",
        "Chunks received in the place of another one, and moved; summed over all "
        "communicators of these processes.",
    ),
    "reconnects": Counter(
        "connections",
        "RDMA connections made again; summed over all communicators of these "
        "processes.",
    ),
    "rejoins": Counter(
        "memberships",
        "RDMA multicast memberships renewed; summed over all communicators of these "
        "processes.",
    ),
    "tx_calls": Counter(
        "calls",
        "System calls that sent datagrams; summed over all communicators of these "
        "processes.",
    ),
    "rx_calls": Counter(
        "calls",
        "System calls that received datagrams, or looked for some; summed over all "
        "communicators of these processes.",
    ),
}
