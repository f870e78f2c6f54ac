# SPDX-License-Identifier: BSD-3-Clause
"""The settings: argument > ``MPIMCAST_*`` variable > default."""

from __future__ import annotations

import dataclasses
import math
import os
from typing import TYPE_CHECKING, Any, NamedTuple

from mpimcast._settings import values
from mpimcast._settings.ranges import Groups, Ports, Range
from mpimcast._support.spelling import nearest, suggestion
from mpimcast.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

PREFIX = "MPIMCAST_"

# What the C API holds in 32 bits.
_UINT32_MAX = 2**32 - 1
_DATAGRAM_BYTES_MAX = 65507  # UDP over IPv4

# Variables that begin so belong to the project's own tests.
_TESTS_PREFIX = f"{PREFIX}TEST_"

# How like a whole variable's name another one must be to be taken for it.
_ALIKE = 0.9

# What can carry data, in the order that TRANSPORT=auto tries.
_TRANSPORTS = ("verbs", "udp", "mpi")

# The ports of groups without PORTS, which are below those that the kernel gives out.
_GROUP_PORTS = Ports(20480, 32767)

# Settings of one process: ranks may differ.
LOCAL = frozenset({"net_devices", "progress", "warn_after", "log"})


class Setting(NamedTuple):
    """One setting as it is in effect."""

    name: str
    value: object
    source: str
    doc: str


def _option(default: object, domain: values.Values, doc: str) -> Any:
    return dataclasses.field(default=default, metadata={"values": domain, "doc": doc})


@dataclasses.dataclass(frozen=True)
class Config:
    """All settings, and where each comes from."""

    transport: str = _option(
        "auto",
        values.ordered(*_TRANSPORTS, last="mpi", word="auto", example="udp,mpi"),
        "what carries the data: verbs (multicast over RDMA devices), udp (UDP "
        "multicast) or mpi (the MPI library); of a list, the first that all ranks can "
        "open; auto: verbs,udp,mpi between hosts, and mpi where all ranks share one "
        "host, whose shared memory is faster",
    )
    net_devices: str = _option(
        "",
        values.text(example="eth0"),
        "a list, separated by commas; udp: interface names or addresses, of which the "
        "first that is up is used; verbs: devices, or device:port such as mlx5_0:1, "
        "over which the ranks of a host are spread; empty chooses",
    )
    min_bytes: int = _option(
        64 << 10,
        values.size(2**62, example="1M"),
        "smaller blocks (what one rank contributes, in an Allgatherv on average) go "
        "through the MPI library; 0: none do",
    )
    chains: int = _option(
        0,
        values.number(1, _UINT32_MAX - 1, example=4, auto=0, all=_UINT32_MAX),
        "how many ranks multicast simultaneously; all: every rank; auto chooses",
    )
    subgroups: int = _option(
        1,
        values.number(1, 60, example=4),
        "multicast groups over which the chunks are spread",
    )
    group: Groups = _option(  # noqa: RUF009 -- a field, as the others
        Groups.parse("239.192.0.0/14"),
        values.groups(example="239.1.2.0/28"),
        "multicast groups that may be used, at least SUBGROUPS of them; each set of "
        "processes that communicates takes some at random",
    )
    ports: Ports | None = _option(  # noqa: RUF009 -- likewise
        None,
        values.ports(example="30000-30999"),
        "udp: the ports of all datagrams, sent and received, and of a TCP listener; "
        "a rank takes two, and one of TCP, for each set of processes; auto: groups "
        "have one of 20480 to 32767, and the kernel chooses the others; verbs always "
        "uses RoCE's port 4791",
    )
    chunk_bytes: int = _option(
        0,
        values.size(_DATAGRAM_BYTES_MAX, example=1456),
        "payload of a datagram; 0: from the path MTU",
    )
    window_bytes: int = _option(
        0,
        values.size(_UINT32_MAX, example="1M"),
        "data in flight towards a rank; 0: adaptive, within the receive buffers",
    )
    eager_bytes: int = _option(
        64 << 10,
        values.size(_UINT32_MAX, example="256K"),
        "operations of at most this size in all start before every rank is ready",
    )
    repair: str = _option(
        "auto",
        values.choice("auto", "nak", "neighbour", "read", example="nak"),
        "how lost chunks are repaired: the sender is asked (nak), the left neighbour "
        "is asked (neighbour), or the left neighbour's memory is read by RDMA (read); "
        "auto: read over verbs, else nak",
    )
    checksum: str = _option(
        "header",
        values.choice("off", "header", "full", example="full"),
        "what a checksum protects, beyond UDP's own: nothing (off), the header, or the "
        "header and the payload (full)",
    )
    ttl: int = _option(
        1,
        values.number(0, 255, example=4),
        "the IP time to live of multicast datagrams; 1 keeps them in their subnet, and "
        "each router on the way needs one more",
    )
    join: str = _option(
        "auto",
        values.choice("auto", "cm", "attach", example="cm"),
        "verbs: groups are joined by the connection manager (cm), or by attaching and "
        "a socket's membership (attach); auto: the first that works",
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
        "verbs: receives posted for each subgroup; 0: 4096 in all, or 1024 where the "
        "memory that may be locked is limited; 2 a rank are needed, 128 at most",
    )
    zero_copy: bool = _option(
        False,  # noqa: FBT003 -- a default, not a flag
        values.switch(example="on"),
        "verbs: receive results in mpimcast.empty arrays in place, except the first "
        "RECEIVES chunks of each chain; needs SUBGROUPS above CHAINS; has saved no "
        "time on Soft-RoCE",
    )
    progress: str = _option(
        "auto",
        values.choice("auto", "poll", "event", example="poll"),
        "verbs: a rank that waits polls all the time (poll), or sleeps until something "
        "arrives (event); auto: poll if each rank of the host may have a core",
    )
    progress_thread: str = _option(
        "on",
        values.choice("on", "off", example="off"),
        "whether a thread progresses operations while the program computes; off, which "
        "udp refuses, violates MPI's progress rule: they progress in calls of mpimcast "
        "only, and the MPI library's Waitall on their requests does not return",
    )
    timeout: float = _option(
        10.0,
        values.seconds(infinite=False, example=30.0),
        "seconds without a sign of life from a rank, or without progress, after which "
        "an operation fails",
    )
    entry_timeout: float = _option(
        math.inf,
        values.seconds(infinite=True, example=600.0),
        "seconds to wait for a live rank that has not entered the operation",
    )
    late_timeout: float = _option(
        600.0,
        values.seconds(infinite=True, example=60.0),
        "seconds to wait for a rank that stands still (a debugger, SIGSTOP, a "
        "suspended container) while its kernel or RDMA device says that its process "
        "exists; one that has ended is noticed within a second",
    )
    warn_after: float = _option(
        10.0,
        values.seconds(infinite=True, example=2.5),
        "seconds of waiting after which a line in the log names the ranks waited for; "
        "further lines follow after twice, four times... as long",
    )
    fault: str = _option("", values.fault(), "faults to inject, for tests of programs")
    log: str = _option(
        "warn",
        values.choice("error", "warn", "info", "debug", example="info"),
        "the least severe messages that are logged, on standard error",
    )
    sources: Mapping[str, str] = dataclasses.field(
        default_factory=dict, compare=False, repr=False
    )

    def __post_init__(self) -> None:
        """See that the settings are possible together."""
        if self.group.count < self.subgroups:
            raise ConfigError(
                f"SUBGROUPS={self.subgroups} needs as many multicast groups, but "
                f"GROUP={self.group} has {self.group.count}: widen GROUP, or lower "
                "SUBGROUPS"
            )

    @classmethod
    def read(
        cls,
        arguments: Mapping[str, object],
        environment: Mapping[str, str] | None = None,
    ) -> Config:
        """Return the settings in effect.

        Parameters
        ----------
        arguments
            What the caller was given, by name in lower case; None means not given.
        environment
            Where to look for the variables; ``os.environ`` if None.
        """
        if environment is None:
            environment = os.environ
        unknown = sorted(set(arguments) - set(option_names()))
        if unknown:
            raise ConfigError(_unknown_keywords(unknown))
        found: dict[str, Any] = {}
        sources = {}
        for option in options():
            variable = PREFIX + option.name.upper()
            if arguments.get(option.name) is not None:
                given, said, source = arguments[option.name], option.name, "argument"
            elif environment.get(variable, "") != "":
                given, said, source = environment[variable], variable, "variable"
            else:
                continue
            found[option.name] = _parse(option, given, said)
            sources[option.name] = source
        return cls(**found, sources=sources)

    @property
    def transports(self) -> tuple[str, ...]:
        """The transports to be tried, in that order."""
        if self.transport == "auto":
            return _TRANSPORTS
        return tuple(self.transport.split(","))

    @property
    def group_ports(self) -> Ports:
        """The ports that multicast groups may have."""
        return self.ports or _GROUP_PORTS

    def settings(self) -> list[Setting]:
        """List every setting with its value, source and meaning."""
        return [
            Setting(
                option.name.upper(),
                shown(option.name, getattr(self, option.name)),
                self.sources.get(option.name, "default"),
                f"{option.metadata['doc']} ({option.metadata['values'].expected})",
            )
            for option in options()
        ]

    def given(self) -> dict[str, object]:
        """Return the arguments that must be equal on all ranks, in lower case."""
        return {
            name: shown(name, getattr(self, name))
            for name, source in self.sources.items()
            if source == "argument" and name not in LOCAL
        }

    def agreed(self) -> dict[str, object]:
        """Return what must be equal on all ranks, by the settings' names."""
        return {
            name.upper(): shown(name, getattr(self, name))
            for name in option_names()
            if name not in LOCAL
        }


def shown(name: str, value: object) -> object:
    """Return a value as it would be written in a variable; numbers stay numbers."""
    if name == "chains":
        return {0: "auto", _UINT32_MAX: "all"}.get(value, value)  # type: ignore[call-overload]
    if isinstance(value, Range):
        return str(value)
    if name == "ports":
        return "auto"
    return "inf" if value == math.inf else value


def option_names() -> list[str]:
    """List the settings by their names in lower case."""
    return [option.name for option in options()]


def options() -> list[dataclasses.Field[Any]]:
    """List the fields of the settings, with their values and meanings."""
    return [field for field in dataclasses.fields(Config) if field.metadata]


def _parse(option: dataclasses.Field[Any], given: object, said: str) -> object:
    domain: values.Values = option.metadata["values"]
    try:
        return domain.parse(str(given))
    except ValueError as error:
        why = f" ({error})" if str(error) else ""
        example = domain.example
        if not said.startswith(PREFIX):
            example = repr(example)
        raise ConfigError(
            f"{said}={given!s} is not valid{why}: it must be {domain.expected}, for "
            f"example {said}={example}"
        ) from None


# ---- names that are no settings ----------------------------------------------


def ignored_variables(environment: Mapping[str, str] | None = None) -> list[str]:
    """Say of each variable that looks like a setting, and is none, what was meant.

    Parameters
    ----------
    environment
        Where to look for the variables; ``os.environ`` if None.
    """
    if environment is None:
        environment = os.environ
    known = [PREFIX + name.upper() for name in option_names()]
    sentences = []
    for name, value in sorted(environment.items()):
        if value == "" or name in known or name.startswith(_TESTS_PREFIX):
            continue
        is_ours = name.upper().startswith(PREFIX)
        if is_ours:
            meant = nearest(name[len(PREFIX) :], option_names()).upper()
            meant = PREFIX + meant if meant else ""
        else:  # maybe the prefix itself is misspelt
            alike = name.upper().startswith("MP")
            meant = nearest(name, known, cutoff=_ALIKE) if alike else ""
        if is_ours or meant:
            hint = f"did you mean {meant}?" if meant else _LISTED
            sentences.append(
                f"{name}={value} is ignored: there is no such setting; {hint}"
            )
    return sentences


_LISTED = "`python -m mpimcast info` lists the settings"


def _unknown_keywords(unknown: list[str]) -> str:
    hints = (suggestion(name, option_names()) for name in unknown)
    each = (
        f"{name} ({hint})" if hint else name
        for name, hint in zip(unknown, hints, strict=True)
    )
    return (
        f"there is no such setting: {', '.join(each)}; the settings are "
        f"{', '.join(option_names())}"
    )
