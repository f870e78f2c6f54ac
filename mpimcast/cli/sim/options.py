# SPDX-License-Identifier: BSD-3-Clause
"""The options that describe a simulated run: their units and ranges."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mpimcast.cli import arguments

if TYPE_CHECKING:
    from mpimcast.cli.arguments import Kind

COLLECTIVES = {"mixed": 0, "allgather": 1, "allgatherv": 2, "bcast": 3}
REPAIRS = {"nak": 0, "neighbour": 1, "read": 2}
CHECKSUMS = {"off": 0, "header": 1, "full": 2}
PROTECTS = {"off": 0, "authenticate": 1, "encrypt": 2}
OUTAGES = {"none": 0, "multicast": 1, "rank": 2, "leaf": 3, "link": 4}

RANKS_MAX = 4096
NOBODY = 2**32 - 1  # MMC_SIM_NOBODY
_UINT32_MAX = 2**32 - 1
UINT64_MAX = 2**64 - 1
_HOUR_S = 3600

_COUNT = arguments.whole(1, 65536)
_MASK = arguments.whole(0, UINT64_MAX, metavar="MASK")
_LOSS = arguments.probability()
_GBITS = arguments.real(
    "Gbit/s", "GBIT/S", scale=1000, low=0.001, high=4000, example="100"
)
_US = arguments.real("microseconds", "US", scale=1000, high=4e6, example="0.5")
_MS = arguments.real(
    "milliseconds", "MS", scale=10**6, high=1000 * _HOUR_S, example="20"
)
_S = arguments.real("seconds", "S", scale=10**9, low=0.001, high=_HOUR_S, example="10")


def _rank(nobody: str) -> Kind:
    """Return a kind that takes a rank; `nobody` are the words for none."""
    kind = arguments.whole(0, RANKS_MAX - 1, metavar="RANK")
    return kind._replace(
        show=lambda value: nobody if value == NOBODY else kind.show(value)
    )


class Option(NamedTuple):
    """An option, and the field of the simulator's spec that it sets.

    `on_fabric` are the words for another default on a fabric.
    """

    name: str
    field: str
    kind: Kind
    doc: str
    on_fabric: str = ""


GROUPS: dict[str, tuple[Option, ...]] = {
    "operations": (
        Option(
            "--ranks",
            "nranks",
            arguments.whole(1, RANKS_MAX),
            "ranks, each on a host of its own",
            "one for each host",
        ),
        Option(
            "--bytes",
            "block_bytes",
            arguments.size(0, 1 << 40),
            "size of each rank's block; may end in K, M or G",
        ),
        Option(
            "--root",
            "root",
            _rank("each Bcast draws its own"),
            "the root of every Bcast",
            "0",
        ),
        Option(
            "--streams",
            "nstreams",
            arguments.whole(1, 64),
            "streams of operations, side by side",
        ),
        Option(
            "--ops", "nops", _COUNT, "operations of each stream, one after the other"
        ),
    ),
    "protocol": (
        Option(
            "--chains",
            "chains",
            arguments.whole(1, _UINT32_MAX - 1, words={"auto": 0, "all": _UINT32_MAX}),
            "ranks that multicast at the same time: a number, auto or all",
        ),
        Option(
            "--subgroups",
            "subgroups",
            arguments.whole(1, 60),
            "multicast groups over which chunks are spread",
        ),
        Option(
            "--chunk", "chunk_bytes", arguments.size(4, 65000), "payload of a datagram"
        ),
        Option(
            "--window",
            "window_bytes",
            arguments.size(0, _UINT32_MAX),
            "data in flight towards a rank; 0: as much as a host buffers",
        ),
        Option(
            "--adaptive",
            "adaptive",
            arguments.whole(0, 1),
            "1: start with a window of 384 KiB, and adapt it to what the queues hold",
            "1",
        ),
        Option(
            "--code-auto",
            "code_auto",
            arguments.whole(0, 1),
            "1: RELIABILITY=auto with the --code, which is used where that is forecast "
            "to take less time",
            "1",
        ),
        Option(
            "--known-rate",
            "known_mbits",
            arguments.real(
                "Gbit/s", "GBIT/S", scale=1000, low=0, high=4_000_000, example="100"
            ),
            "rate that ranks remember from earlier operations; 0: none",
        ),
        Option(
            "--eager",
            "eager_bytes",
            arguments.size(0, _UINT32_MAX),
            "operations up to this size do not wait until all ranks are ready",
        ),
        Option(
            "--timeout",
            "timeout_ns",
            _S,
            "time without an answer after which a rank gives up",
        ),
        Option(
            "--late-timeout",
            "late_timeout_ns",
            _S,
            "time after which a rank gives up one that stands still",
        ),
    ),
    "hosts": (
        Option(
            "--buffer",
            "buffer_bytes",
            arguments.size(1, 1 << 40),
            "received data that a host can hold unread",
        ),
        Option(
            "--host-ranks",
            "host_ranks",
            arguments.whole(1, RANKS_MAX),
            "neighbours that share a machine, and stand still together",
        ),
        Option(
            "--place",
            "place_ns",
            _US,
            "time that it takes to put a payload in its place",
        ),
        Option(
            "--receive",
            "receive_ns",
            _US,
            "time that the engine takes for each datagram that it has received",
        ),
        Option(
            "--zero-copy",
            "zero_copy",
            arguments.whole(0, 4096),
            "receives posted to the places of chunks; 0: chunks are copied",
        ),
        Option(
            "--tight-ranks",
            "tight_ranks",
            _MASK,
            "ranks that can register few regions of memory: bit r stands for rank r",
        ),
        Option(
            "--registrations",
            "registrations",
            arguments.whole(0, _UINT32_MAX),
            "regions that each of those can register at a time",
        ),
    ),
    "network": (
        Option("--rate", "link_mbits", _GBITS, "rate of a host's link"),
        Option(
            "--switches",
            "nswitches",
            arguments.whole(1, RANKS_MAX),
            "leaf switches, under a spine if there are several",
        ),
        Option(
            "--trunk-rate",
            "trunk_mbits",
            _GBITS,
            "rate of a link between switches",
            "that of hosts' links",
        ),
        Option("--latency", "latency_ns", _US, "delay of each link", "0.3"),
        Option("--jitter", "jitter_ns", _US, "greatest random delay on top of it"),
        Option(
            "--uneven",
            "uneven",
            arguments.whole(0, 1),
            "1: each link draws its own latency and jitter, up to these",
        ),
        Option(
            "--detour",
            "detour_ns",
            _US,
            "greatest additional delay of a flow's path over the spine",
        ),
        Option(
            "--queue",
            "queue_bytes",
            arguments.size(1, 1 << 40),
            "bytes that each port of a switch can hold",
            "1M",
        ),
        Option(
            "--loss",
            "loss_ppm",
            _LOSS,
            "of a datagram to be lost on its way to a host, such as 0.05 or 5%%",
        ),
        Option(
            "--uplink-loss",
            "uplink_loss_ppm",
            _LOSS,
            "of its loss on an earlier link, for all hosts behind that",
        ),
        Option(
            "--loss-period",
            "loss_period",
            arguments.whole(1, 1_000_000),
            "mean number of consecutive datagrams that a link loses; 1: losses are "
            "independent",
        ),
        Option("--duplicate", "duplicate_ppm", _LOSS, "of a second copy to arrive"),
    ),
    "mishaps": (
        Option(
            "--skew",
            "entry_spread_ns",
            _US,
            "longest delay of a rank's first entry, of which each draws its own",
        ),
        Option(
            "--late-rank",
            "delayed_rank",
            _rank("none"),
            "rank that enters its first operation late",
        ),
        Option("--late", "delay_ns", _MS, "how late it is"),
        Option(
            "--stalled-rank",
            "stalled_rank",
            _rank("each, at times of its own"),
            "rank that stands still again and again",
        ),
        Option("--stall", "stall_ns", _MS, "how long it stands still"),
        Option(
            "--stall-period",
            "stall_period_ns",
            _MS,
            "time from one standstill to the next",
        ),
        Option("--stall-begin", "stall_begin_ns", _MS, "time of the first one"),
        Option("--dead-rank", "dead_rank", _rank("none"), "rank whose host dies"),
        Option("--dead", "dead_ns", _MS, "time of its death"),
        Option("--ended-rank", "ended_rank", _rank("none"), "rank whose process ends"),
        Option("--ended", "ended_ns", _MS, "time of its end"),
        Option(
            "--cancelling-rank",
            "cancelling_rank",
            _rank("none"),
            "rank that is interrupted",
        ),
        Option("--cancel", "cancel_ns", _MS, "time of the interruption"),
        Option(
            "--deaf-ranks",
            "deaf_ranks",
            _MASK,
            "ranks that receive no multicast: bit r stands for rank r",
        ),
        Option("--deaf", "deaf_ns", _MS, "time from which on they receive none"),
        Option("--deaf-end", "deaf_end_ns", _MS, "time up to which; 0: for good"),
        Option(
            "--outage-place",
            "outage_place",
            arguments.whole(0, _UINT32_MAX),
            "rank, leaf or link of a fabric that carries nothing during an --outage; "
            "links as --json numbers them",
        ),
        Option("--outage-begin", "outage_ns", _MS, "time of the outage's begin"),
        Option("--outage-end", "outage_end_ns", _MS, "time of its end"),
    ),
}
