# SPDX-License-Identifier: BSD-3-Clause
"""The command line of ``python -m mpimcast sim``: units, ranges, defaults."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any, NamedTuple

from mpimcast._native import core
from mpimcast.cli import arguments, commands

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mpimcast.cli.arguments import Kind

COLLECTIVES = {"mixed": 0, "allgather": 1, "allgatherv": 2, "bcast": 3}
_REPAIRS = {"nak": 0, "neighbour": 1, "read": 2}
_CHECKSUMS = {"off": 0, "header": 1, "full": 2}
_OUTAGES = {"none": 0, "multicast": 1, "rank": 2, "leaf": 3}

_RANKS_MAX = 4096
_NOBODY = 2**32 - 1  # MMC_SIM_NOBODY
_UINT32_MAX = 2**32 - 1
_UINT64_MAX = 2**64 - 1
_HOUR_S = 3600

# What a full datagram has besides its payload, at most: our header and checksum,
# those of UDP, IPv4 and Ethernet.
_HEADERS_BYTES = 64

_COUNT = arguments.whole(1, 65536)
_MASK = arguments.whole(0, _UINT64_MAX, metavar="MASK")
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
    """Take a rank; `nobody` is what its absence is called."""
    kind = arguments.whole(0, _RANKS_MAX - 1, metavar="RANK")
    return kind._replace(
        show=lambda value: nobody if value == _NOBODY else kind.show(value)
    )


class Option(NamedTuple):
    """An option, and the field of the simulator's spec that it sets."""

    name: str
    field: str
    kind: Kind
    doc: str


_GROUPS: dict[str, tuple[Option, ...]] = {
    "operations": (
        Option(
            "--ranks",
            "nranks",
            arguments.whole(1, _RANKS_MAX),
            "ranks, each on a host of its own",
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
            "1: begin with a window of 384 KiB, and find out what the queues hold",
        ),
        Option(
            "--known-rate",
            "known_mbits",
            arguments.real(
                "Gbit/s", "GBIT/S", scale=1000, low=0, high=4_000_000, example="100"
            ),
            "rate that ranks remember of earlier operations; 0: none",
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
            arguments.whole(1, _RANKS_MAX),
            "neighbours that share a machine, and stand still together",
        ),
        Option(
            "--place",
            "place_ns",
            _US,
            "time that it takes to put a payload in its place",
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
            arguments.whole(1, _RANKS_MAX),
            "leaf switches, under a spine if there are several",
        ),
        Option(
            "--trunk-rate", "trunk_mbits", _GBITS, "rate of a link between switches"
        ),
        Option("--latency", "latency_ns", _US, "delay of each link"),
        Option("--jitter", "jitter_ns", _US, "greatest random delay on top of it"),
        Option(
            "--uneven",
            "uneven",
            arguments.whole(0, 1),
            "1: each link draws its own two, up to those",
        ),
        Option(
            "--detour",
            "detour_ns",
            _US,
            "greatest delay of the way over the spine that a flow takes",
        ),
        Option(
            "--queue",
            "queue_bytes",
            arguments.size(1, 1 << 40),
            "what each port of a switch can hold",
        ),
        Option(
            "--loss",
            "loss_ppm",
            _LOSS,
            "that a datagram is lost on its way to a host, such as 0.05 or 5%%",
        ),
        Option(
            "--uplink-loss",
            "uplink_loss_ppm",
            _LOSS,
            "that it is lost on an earlier link, for all hosts behind it",
        ),
        Option(
            "--duplicate", "duplicate_ppm", _LOSS, "that a second copy of it arrives"
        ),
    ),
    "mishaps": (
        Option(
            "--late-rank",
            "late_rank",
            _rank("none"),
            "rank that enters its first operation late",
        ),
        Option("--late", "late_ns", _MS, "how late it is"),
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
            arguments.whole(0, _RANKS_MAX - 1),
            "rank or leaf whose links carry nothing during an --outage",
        ),
        Option("--outage-begin", "outage_ns", _MS, "time of the outage's begin"),
        Option("--outage-end", "outage_end_ns", _MS, "time of its end"),
    ),
}


def parser(defaults: Mapping[str, Any]) -> argparse.ArgumentParser:
    """Return the parser; what is not given is not among its results.

    Parameters
    ----------
    defaults
        The simulator's spec unless options change it.
    """
    made = commands.parser(
        "sim",
        "Simulate collectives on a network in virtual time, and check that every byte "
        "is right. Times are in microseconds (US), milliseconds (MS) or seconds (S), "
        "as each option says.",
    )
    for title, options in _GROUPS.items():
        group = made.add_argument_group(title)
        for name, field, kind, doc in options:
            group.add_argument(
                name,
                dest=field,
                type=kind.parse,
                metavar=kind.metavar,
                default=argparse.SUPPRESS,
                help=f"{doc} (default: {kind.show(defaults[field])})",
            )
        if title == "operations":
            _add_choice(group, "--kind", COLLECTIVES, "allgather", "collective")
        if title == "protocol":
            _add_choice(group, "--repair", _REPAIRS, "nak", "how losses are repaired")
            _add_choice(group, "--checksum", _CHECKSUMS, "header", "what is protected")
        if title == "mishaps":
            _add_choice(group, "--outage", _OUTAGES, "none", "what an outage takes")
            group.add_argument(
                "--fault",
                type=_fault,
                default=argparse.SUPPRESS,
                metavar="CLAUSES",
                help="the setting FAULT of every rank, such as loss=0.1,seed=9 "
                "(default: none)",
            )
    _add_runs(made)
    return made


def _fault(text: str) -> str:
    try:
        core.check_fault(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return text


def _add_choice(
    group: Any, name: str, choices: Mapping[str, int], default: str, doc: str
) -> None:
    group.add_argument(
        name, choices=choices, default=default, help=f"{doc} (default: %(default)s)"
    )


def _add_runs(made: argparse.ArgumentParser) -> None:
    group = made.add_argument_group("the run")
    add = group.add_argument
    seed = arguments.whole(0, _UINT64_MAX, metavar="SEED")
    add(
        "--seed",
        type=seed.parse,
        metavar=seed.metavar,
        default=argparse.SUPPRESS,
        help="seed of everything random (default: 1)",
    )
    add("--json", action="store_true", help="print spec and result as JSON")
    add(
        "--unwatched",
        action="store_true",
        default=argparse.SUPPRESS,
        help="do not judge what ranks send, which a FAULT with dir=tx spoils",
    )
    add(
        "--case",
        type=seed.parse,
        metavar="SEED",
        help="run the random case of this seed instead, changed by other options",
    )
    add(
        "--cases",
        type=arguments.whole(1, 2**31 - 1).parse,
        metavar="N",
        help="run N random cases, from the seed that --case gives, or 0, on",
    )
    add(
        "--crowd",
        type=arguments.whole(2, _RANKS_MAX).parse,
        nargs=2,
        metavar=("MIN", "MAX"),
        help="of so many ranks, where machines and networks are not still",
    )


def numbers(options: dict[str, Any]) -> dict[str, int]:
    """Take out what was chosen by name; return the numbers that stand for it."""
    return {
        "kind": COLLECTIVES[options.pop("kind")],
        "repair": _REPAIRS[options.pop("repair")],
        "checksum": _CHECKSUMS[options.pop("checksum")],
        "outage": _OUTAGES[options.pop("outage")],
    }


def conflict(spec: Mapping[str, Any]) -> str:
    """Say why options do not go together; return nothing if they do."""
    nranks = spec["nranks"]
    ranks = [
        option
        for options in _GROUPS.values()
        for option in options
        if option.kind.metavar == "RANK"
    ]
    for option in ranks:
        if nranks <= spec[option.field] < _NOBODY:
            return (
                f"{option.name} {spec[option.field]}: the {nranks} ranks are 0 to "
                f"{nranks - 1}"
            )
    if spec["nswitches"] > nranks:
        return f"--switches {spec['nswitches']}: there are only {nranks} ranks"
    if spec["stall_ns"] and spec["stall_ns"] >= spec["stall_period_ns"]:
        return "--stall must be less than --stall-period"
    datagram_bytes = spec["chunk_bytes"] + _HEADERS_BYTES
    for name, field in (("--queue", "queue_bytes"), ("--buffer", "buffer_bytes")):
        if spec[field] < datagram_bytes:
            return (
                f"{name} {spec[field]}: a datagram of --chunk {spec['chunk_bytes']} "
                f"needs {datagram_bytes}"
            )
    return ""
