# SPDX-License-Identifier: BSD-3-Clause
"""The settings: argument > ``MPIMCAST_*`` variable > default."""

from __future__ import annotations

import dataclasses
import math
import os
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from mpimcast.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

PREFIX = "MPIMCAST_"

# What the C API holds in 32 bits.
_UINT32_MAX = 2**32 - 1
_DATAGRAM_BYTES_MAX = 65507  # UDP over IPv4
_TIMEOUT_S_MAX = 10**9

# Settings of one process: ranks may differ.
_LOCAL = frozenset({"net_devices", "progress", "log"})


class Setting(NamedTuple):
    """One setting as it is in effect."""

    name: str
    value: object
    source: str
    doc: str


def _choice(*choices: str) -> tuple[Callable[[str], object], str]:
    def parse(text: str) -> str:
        if text.lower() not in choices:
            raise ValueError
        return text.lower()

    return parse, " or ".join(choices)


def _number(low: int, high: int, **words: int) -> tuple[Callable[[str], object], str]:
    def parse(text: str) -> int:
        if text.lower() in words:
            return words[text.lower()]
        value = int(text)
        if not low <= value <= high:
            raise ValueError
        return value

    return parse, " or ".join([f"a number from {low} to {high}", *words])


def parse_size(text: str) -> int:
    """Return a number of bytes that may be written as 64K, 1M or 1G."""
    match = re.fullmatch(r"(\d+)([kmg]?)", text.strip().lower())
    if match is None:
        raise ValueError(f"{text!r} is no number of bytes, such as 8, 64K, 1M or 1G")
    return int(match[1]) << {"": 0, "k": 10, "m": 20, "g": 30}[match[2]]


def _size(high: int) -> tuple[Callable[[str], object], str]:
    def parse(text: str) -> int:
        value = parse_size(text)
        if value > high:
            raise ValueError
        return value

    return parse, f"bytes up to {high}, also as 64K, 1M or 1G (powers of 2)"


def _seconds(*, infinite: bool) -> tuple[Callable[[str], object], str]:
    def parse(text: str) -> float:
        value = float(text)
        if not (0 < value <= _TIMEOUT_S_MAX or (infinite and value == math.inf)):
            raise ValueError
        return value

    return parse, "seconds above 0" + (" or inf" if infinite else "")


def _switch() -> tuple[Callable[[str], object], str]:
    words = {"1": True, "on": True, "true": True, "0": False, "off": False}

    def parse(text: str) -> bool:
        try:
            return {**words, "false": False}[text.lower()]
        except KeyError:
            raise ValueError from None

    return parse, "on or off"


def _text() -> tuple[Callable[[str], object], str]:
    return str.strip, "text"


def _fault() -> tuple[Callable[[str], object], str]:
    def parse(text: str) -> str:
        text = text.strip()
        if text:
            from mpimcast import _ffi

            _ffi.check_fault(text)
        return text

    return parse, (
        "clauses joined by ';' of key=value pairs joined by ',' with the keys loss, "
        "dup, reorder, corrupt (probabilities), delay_us, stall_ms, seed, "
        "rank=R+R..., dir=rx|tx, kind=multicast|control|repair|all"
    )


def _option(
    default: object, domain: tuple[Callable[[str], object], str], doc: str
) -> Any:
    parse, choices = domain
    return dataclasses.field(
        default=default, metadata={"parse": parse, "choices": choices, "doc": doc}
    )


@dataclasses.dataclass(frozen=True)
class Config:
    """All settings, and where each comes from."""

    transport: str = _option(
        "auto",
        _choice("auto", "verbs", "udp", "mpi"),
        "what carries the data: multicast over verbs (RDMA devices) or udp, the mpi "
        "library, or auto: the first of these that can be opened on all ranks",
    )
    net_devices: str = _option(
        "",
        _text(),
        "comma separated: for udp interface names or addresses, of which the first "
        "that is up is used; for verbs devices, or device:port, over which the ranks "
        "of a host are spread; empty chooses",
    )
    min_bytes: int = _option(
        64 << 10,
        _size(2**62),
        "blocks (what one rank contributes) below this take the MPI library's own "
        "collective; 0 = never",
    )
    chains: int = _option(
        0,
        _number(1, _UINT32_MAX - 1, auto=0, all=_UINT32_MAX),
        "how many ranks multicast at a time; all = every rank, auto chooses",
    )
    subgroups: int = _option(
        1, _number(1, 60), "multicast groups over which chunks are spread"
    )
    chunk_bytes: int = _option(
        0, _size(_DATAGRAM_BYTES_MAX), "payload of a datagram; 0 = from the path MTU"
    )
    window_bytes: int = _option(
        0, _size(_UINT32_MAX), "data in flight towards a rank; 0 = adaptive"
    )
    eager_bytes: int = _option(
        64 << 10,
        _size(_UINT32_MAX),
        "operations up to this, in all, do not wait for the ranks to be ready",
    )
    repair: str = _option(
        "auto",
        _choice("auto", "nak", "neighbour", "read"),
        "who is asked for what was lost: its sender (nak) or the left neighbour, "
        "whose memory RDMA can also read; auto: read over verbs, else nak",
    )
    checksum: str = _option(
        "header",
        _choice("off", "header", "full"),
        "what is protected beyond UDP's own checksum",
    )
    ttl: int = _option(1, _number(0, 255), "routers that a multicast datagram passes")
    join: str = _option(
        "auto",
        _choice("auto", "cm", "attach"),
        "how verbs joins a group: by the connection manager, or by attaching and a "
        "socket's membership; auto: by the first that works",
    )
    pkey_index: int = _option(
        0, _number(0, 65535), "verbs: which of the port's partition keys is used"
    )
    service_level: int = _option(0, _number(0, 15), "verbs: InfiniBand's service level")
    traffic_class: int = _option(
        0, _number(0, 255), "verbs: the traffic class (RoCE: DSCP and ECN bits)"
    )
    receives: int = _option(
        0, _number(0, 32000), "verbs: receives posted for each subgroup; 0 chooses"
    )
    zero_copy: bool = _option(
        False,  # noqa: FBT003 -- a default, not a flag
        _switch(),
        "verbs: whether results in mpimcast.empty are received in place",
    )
    progress: str = _option(
        "auto",
        _choice("auto", "poll", "event"),
        "verbs: whether who waits polls all the time, or sleeps until something "
        "comes; auto: polls if each rank of the host may have a core",
    )
    progress_thread: str = _option(
        "on",
        _choice("on", "off"),
        "verbs: whether a thread moves operations on while the program computes; off "
        "gives MPI's rule of progress up: they move only in calls of mpimcast, and "
        "the MPI library's Waitall on requests of ours does not return",
    )
    timeout: float = _option(
        10.0,
        _seconds(infinite=False),
        "seconds without an answer or without progress after which an operation fails",
    )
    entry_timeout: float = _option(
        math.inf,
        _seconds(infinite=True),
        "seconds to wait for a live rank that has not yet entered the operation",
    )
    fault: str = _option("", _fault(), "faults to inject, for tests")
    log: str = _option(
        "warn",
        _choice("error", "warn", "info", "debug"),
        "least severe messages that are logged",
    )
    sources: Mapping[str, str] = dataclasses.field(
        default_factory=dict, compare=False, repr=False
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
            raise ConfigError(
                f"no such setting: {', '.join(unknown)}; there are "
                f"{', '.join(option_names())}"
            )
        values: dict[str, Any] = {}
        sources = {}
        for option in _options():
            variable = PREFIX + option.name.upper()
            if arguments.get(option.name) is not None:
                given, said, source = arguments[option.name], option.name, "argument"
            elif environment.get(variable, "") != "":
                given, said, source = environment[variable], variable, "variable"
            else:
                continue
            values[option.name] = _parse(option, given, said)
            sources[option.name] = source
        return cls(**values, sources=sources)

    def settings(self) -> list[Setting]:
        """List every setting with its value, source and meaning."""
        return [
            Setting(
                option.name.upper(),
                shown(option.name, getattr(self, option.name)),
                self.sources.get(option.name, "default"),
                f"{option.metadata['doc']} ({option.metadata['choices']})",
            )
            for option in _options()
        ]

    def agreed(self) -> dict[str, object]:
        """Return what must be equal on all ranks, by the settings' names."""
        return {
            name.upper(): shown(name, getattr(self, name))
            for name in option_names()
            if name not in _LOCAL
        }


def shown(name: str, value: object) -> object:
    """Return a value as it would be written in a variable; numbers stay numbers."""
    if name == "chains":
        return {0: "auto", _UINT32_MAX: "all"}.get(value, value)  # type: ignore[call-overload]
    return "inf" if value == math.inf else value


def option_names() -> list[str]:
    """List the settings by their names in lower case."""
    return [option.name for option in _options()]


def _options() -> list[dataclasses.Field[Any]]:
    return [field for field in dataclasses.fields(Config) if field.metadata]


def _parse(option: dataclasses.Field[Any], given: object, said: str) -> object:
    choices = option.metadata["choices"]
    try:
        return option.metadata["parse"](str(given))
    except ValueError as error:
        why = f" ({error})" if option.name == "fault" else ""
        raise ConfigError(
            f"{said}={given!s} is not possible{why}; the choices are: {choices}"
        ) from None
