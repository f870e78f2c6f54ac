# SPDX-License-Identifier: BSD-3-Clause
"""The options of `Config`: each setting's default, the values it takes, its meaning."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from mpimcast._settings import values
from mpimcast._settings.ranges import Groups, Ports
from mpimcast._settings.setting import UINT32_MAX

# The transports, in the order in which TRANSPORT=auto tries them.
TRANSPORTS = ("shm", "verbs", "udp", "mpi")

_DATAGRAM_BYTES_MAX = 65507  # UDP over IPv4

# The most rails that the C library knows.
_RAILS_MAX = 8

# The longest name of a proxy that the C library takes.
PROXY_NAME_MAX = 63

# Whether datagrams are protected unless PROTECT says.
_PROTECT = "auto"


def _option(default: object, domain: values.Values, doc: str) -> Any:
    return dataclasses.field(default=default, metadata={"values": domain, "doc": doc})


@dataclasses.dataclass(frozen=True)
class Options:
    """The fields of `Config` that are settings; their metadata describes each."""

    transport: str = _option(
        "auto",
        values.ordered(*TRANSPORTS, last="mpi", word="auto", example="udp,mpi"),
        "what carries the data: shm (memory that the ranks of one node share), verbs "
        "(multicast over RDMA devices), udp (UDP multicast) or mpi (the MPI library); "
        "given several, the first that all ranks can open; auto: verbs,udp,mpi between "
        "hosts, and shm,mpi where all ranks share one host",
    )
    net_devices: str = _option(
        "",
        values.text(example="eth0"),
        "a list, separated by commas; udp: interface names or addresses, of which the "
        "first that is up is used; verbs: devices, or device:port such as mlx5_0:1, "
        "over which the ranks of a host are spread; empty chooses",
    )
    min_bytes: int | None = _option(
        None,
        values.size(2**62, example="1M", auto=None),
        "the MPI library carries blocks smaller than this (a block is what one rank "
        "contributes, in an Allgatherv on average); 0: it carries none; auto: 4K over "
        "shm, else 64K",
    )
    node_bytes: int = _option(
        64 << 20,
        values.size(2**62, example="256M"),
        "the most memory that the ranks of a node share, for each set of processes "
        "that communicates, besides mpimcast.empty arrays; 0: they share none, and "
        "each rank multicasts for itself",
    )
    rails: int = _option(
        1,
        values.number(1, _RAILS_MAX, example=2),
        "how many network devices each node uses at the same time, where there are "
        "several nodes with several ranks each: the first of NET_DEVICES that can be "
        "used or, if it is empty, those that would be chosen first; at most as many "
        "as the node with the fewest ranks, or usable devices, has",
    )
    choice: str = _option(
        "measure",
        values.text(example="always"),
        "what carries blocks of at least MIN_BYTES, where TRANSPORT also allows mpi: "
        "mpimcast or the MPI library, whichever was faster in a few trials (measure), "
        "mpimcast (always), the MPI library (never); or the path of a file in which "
        "rank 0 keeps what was measured for later jobs",
    )
    chains: int = _option(
        0,
        values.number(1, UINT32_MAX - 1, example=4, auto=0, all=UINT32_MAX),
        "how many ranks multicast simultaneously; all: every rank; auto chooses",
    )
    subgroups: int = _option(
        1,
        values.number(1, 60, example=4),
        "number of multicast groups over which the chunks are spread",
    )
    workers: str = _option(
        "auto",
        values.choice("auto", "on", "off", example="on"),
        "udp: whether each subgroup has a worker, which is a thread that receives it; "
        "auto: if SUBGROUPS is greater than 1, and this rank has a processor for each "
        "worker and one more",
    )
    coder: str = _option(
        "auto",
        values.choice("auto", "on", "off", example="on"),
        "udp and verbs: whether a thread, the coder, computes the parity of "
        "RELIABILITY=code or auto and mends what is lost, or whoever receives does so "
        "in between; auto: if this rank has a processor for it beside its own and "
        "those of its workers; PROGRESS=proxy has none",
    )
    group: Groups = _option(  # noqa: RUF009 -- the call makes a field
        Groups.parse("239.192.0.0/14"),
        values.groups(example="239.1.2.0/28"),
        "multicast groups that may be used, at least SUBGROUPS of them; each set of "
        "processes that communicates takes SUBGROUPS of them at random",
    )
    ports: Ports | None = _option(  # noqa: RUF009 -- the call makes a field
        None,
        values.ports(example="30000-30999"),
        "udp: the ports of all datagrams, sent and received, and of a TCP listener; "
        "for each set of processes that communicates, a rank takes two ports of UDP "
        "and one of TCP; auto: multicast groups have one of the ports 20480 to 32767, "
        "and the kernel chooses all others; verbs always uses RoCE's port 4791",
    )
    chunk_bytes: int = _option(
        0,
        values.size(_DATAGRAM_BYTES_MAX, example=1456),
        "payload of a datagram in bytes; 0: as much as the path's MTU allows",
    )
    window_bytes: int = _option(
        0,
        values.size(UINT32_MAX, example="1M"),
        "the most data that may be on its way to a rank, in bytes; 0: adapts to the "
        "network, within the receive buffers",
    )
    eager_bytes: int = _option(
        64 << 10,
        values.size(UINT32_MAX, example="256K"),
        "an operation starts to send before all ranks have entered it if its whole "
        "result has at most this many bytes",
    )
    repair: str = _option(
        "auto",
        values.choice("auto", "nak", "neighbour", "read", example="nak"),
        "how lost chunks are repaired: the sender is asked (nak), the left neighbour "
        "is asked (neighbour), or the left neighbour's memory is read by RDMA (read); "
        "auto: read over verbs, else nak",
    )
    reliability: str = _option(
        "repeat",
        values.choice("repeat", "code", "auto", example="code"),
        "how lost chunks are made up for: they are sent again (repeat); or parity "
        "chunks of an erasure code are sent with them, from which receivers mend what "
        "is lost (code), which pays off where round trips are long; auto: the one that "
        "is forecast for each operation to take less time, from what was lost before",
    )
    code: str = _option(
        "32,4",
        values.code(example="8,1"),
        "with RELIABILITY=code: how many data chunks a group has at most, and how many "
        "parity chunks are sent with it (auto: at most); with 0 of these, owners send "
        "parity only when several ranks ask for different chunks of a group",
    )
    checksum: str = _option(
        "header",
        values.choice("off", "header", "full", example="full"),
        "what a checksum protects, beyond UDP's own: nothing (off), the header, or the "
        "header and the payload (full)",
    )
    protect: str = _option(
        _PROTECT,
        values.choice("off", "auto", "authenticate", "encrypt", example="encrypt"),
        "how datagrams are protected against other hosts and users: not (off); each "
        "has a tag that only ranks of the job can make (authenticate); what follows "
        "their headers is encrypted, too (encrypt); auto: authenticate over udp if "
        "all ranks have a library for it, else not; over verbs protected chunks are "
        "not placed by the device, and not read from memory",
    )
    ttl: int = _option(
        1,
        values.number(0, 255, example=4),
        "the IP time to live of multicast datagrams; 1 keeps them in their subnet; add "
        "1 for each router on the way",
    )
    join: str = _option(
        "auto",
        values.choice("auto", "cm", "attach", example="cm"),
        "verbs: how multicast groups are joined: by the connection manager (cm), or by "
        "attaching the queue pair and joining with a socket (attach); auto: the first "
        "of the two that works",
    )
    pkey_index: int = _option(
        0,
        values.number(0, 65535, example=1),
        "verbs: index of the partition key",
    )
    service_level: int = _option(
        0, values.number(0, 15, example=3), "verbs: InfiniBand's service level"
    )
    traffic_class: int = _option(
        0,
        values.number(0, 255, example=104),
        "verbs: the traffic class (RoCE: DSCP and ECN bits)",
    )
    receives: int = _option(
        0,
        values.number(0, 32000, example=4096),
        "verbs: how many receives are posted for each subgroup, at least 2 for each of "
        "the first 64 ranks; 0: 4096 for all subgroups together, or 1024 where the "
        "memory that may be locked is limited",
    )
    zero_copy: bool = _option(
        False,  # noqa: FBT003 -- a default, not a flag
        values.switch(example="on"),
        "verbs: let the device put results right into mpimcast.empty arrays, except "
        "the first RECEIVES chunks of each chain; needs more SUBGROUPS than CHAINS; "
        "has saved no time on Soft-RoCE",
    )
    progress: str = _option(
        "auto",
        values.choice("auto", "poll", "event", "proxy", example="poll"),
        "verbs: whether a rank that waits polls all the time (poll), or sleeps until "
        "something arrives (event); auto: poll if the host has a core for each rank; "
        "proxy: over udp and verbs a proxy of this user on this node runs the "
        "operations, so that this process needs no thread and no core for them",
    )
    proxy: str = _option(
        "",
        values.name(PROXY_NAME_MAX, example="training"),
        "the name of the proxy that PROGRESS=proxy uses, which is started if there is "
        "none; empty: the number of the user",
    )
    progress_thread: str = _option(
        "on",
        values.choice("on", "off", example="off"),
        "whether a thread progresses operations while the program computes; off works "
        "over shm and verbs only, and violates MPI's progress rule: operations "
        "progress in calls of mpimcast alone, and the MPI library's Waitall on their "
        "requests does not return",
    )
    timeout: float = _option(
        10.0,
        values.seconds(infinite=False, example=30.0),
        "an operation fails when a rank has given no sign of life, or the operation "
        "has made no progress, for this many seconds",
    )
    entry_timeout: float = _option(
        math.inf,
        values.seconds(infinite=True, example=600.0),
        "seconds to wait for a live rank that has not entered the operation",
    )
    late_timeout: float = _option(
        600.0,
        values.seconds(infinite=True, example=60.0),
        "seconds to wait for a rank that stands still (because of a debugger, SIGSTOP "
        "or a suspended container) while its kernel or RDMA device says that its "
        "process exists; that a process has ended is noticed within a second",
    )
    warn_after: float = _option(
        10.0,
        values.seconds(infinite=True, example=2.5),
        "seconds of waiting after which a line in the log names the ranks waited for; "
        "another line follows each time the wait has doubled",
    )
    fault: str = _option(
        "", values.fault(), "faults to inject into the traffic, to test programs"
    )
    log: str = _option(
        "warn",
        values.choice("error", "warn", "info", "debug", example="info"),
        "the least severe messages that are logged, on standard error",
    )
    trace: str = _option(
        "",
        values.text(example="traces"),
        "a directory where each process keeps its latest 65536 events (2.5 MiB) in a "
        "file: operations, their stages and repairs, and which ranks they waited for; "
        "`python -m mpimcast trace` reads the files; given on all ranks or on none; "
        "empty: nothing is traced",
    )


def options() -> tuple[dataclasses.Field[Any], ...]:
    """Return the fields of `Options`, in the order in which they are listed."""
    return dataclasses.fields(Options)


def option_names() -> list[str]:
    """List the settings by their names in lower case."""
    return [option.name for option in options()]
