# SPDX-License-Identifier: BSD-3-Clause
"""The C core: its versions, its error texts, and what it counts and checks."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from mpimcast._core import ffi, lib
from mpimcast.errors import TransportError

if TYPE_CHECKING:
    from collections.abc import Callable

    from mpimcast._core import _CData as CData

# The number that stands for no rank.
NOBODY = 2**32 - 1

CHECKSUMS = {"off": 0, "header": 1, "full": 2}
JOINS = {
    "auto": lib.MMC_JOIN_AUTO,
    "cm": lib.MMC_JOIN_CM,
    "attach": lib.MMC_JOIN_ATTACH,
}
REPAIRS = {"nak": 0, "neighbour": 1, "read": 2}
KINDS = {
    "allgather": lib.MMC_ALLGATHER,
    "allgatherv": lib.MMC_ALLGATHERV,
    "bcast": lib.MMC_BCAST,
}
KIND_NAMES = {number: name.capitalize() for name, number in KINDS.items()}
TRANSPORT_VERBS = lib.MMC_TRANSPORT_VERBS


def wire_version() -> int:
    """Return the version of the wire format and of the state machine."""
    return lib.mmc_wire_version()


def check_fault(fault: str) -> None:
    """Raise ValueError, with the reason, unless `fault` is a valid FAULT setting."""
    if lib.mmc_fault_check(fault.encode()) != 0:
        raise ValueError(last_error())


def counter_names() -> list[str]:
    """Return the names of a stream's counters."""
    count = lib.mmc_counter_count()
    return [string(lib.mmc_counter_name(index)) for index in range(count)]


def string(text: CData) -> str:
    return bytes(ffi.string(text)).decode(errors="replace")


def last_error() -> str:
    return string(lib.mmc_last_error())


class PortTakenError(TransportError):
    """Another program on this host holds the groups' port exclusively."""


def check(status: int, what: str) -> None:
    """Raise the error for a negative `status` of any call but an operation's."""
    if status >= 0:
        return
    text = f"{what}: {string(lib.mmc_strerror(status))}"
    more = last_error()
    kind = PortTakenError if status == -lib.MMC_EADDRINUSE else TransportError
    raise kind(f"{text} ({more})" if more else text)


def counters(read: Callable[[CData, CData], None], of: CData) -> Counter[str]:
    names = counter_names()
    values = ffi.new("uint64_t[]", len(names))
    read(of, values)
    return Counter(dict(zip(names, map(int, values), strict=True)))


def nanoseconds(seconds: float) -> int:
    return 0 if seconds == float("inf") else int(seconds * 1e9)
