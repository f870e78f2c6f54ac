# SPDX-License-Identifier: BSD-3-Clause
"""The C library's constants, errors and counters, which all of `_native` shares."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from mpimcast._core import ffi, lib
from mpimcast.errors import TransportError

if TYPE_CHECKING:
    from collections.abc import Callable

    from mpimcast._core import _CData as CData

# The number that stands for no rank in the C library's structures.
NOBODY = 2**32 - 1

# The numbers that the headers in ffi/include/mpimcast give to the values of settings.
CHECKSUMS = {"off": 0, "header": 1, "full": 2}
JOINS = {
    "auto": lib.MMC_JOIN_AUTO,
    "cm": lib.MMC_JOIN_CM,
    "attach": lib.MMC_JOIN_ATTACH,
}
REPAIRS = {"nak": 0, "neighbour": 1, "read": 2}

# The kinds of operations: C's number by name, and the name for messages by number.
KINDS = {
    "allgather": lib.MMC_ALLGATHER,
    "allgatherv": lib.MMC_ALLGATHERV,
    "bcast": lib.MMC_BCAST,
    "node_barrier": lib.MMC_NODE_BARRIER,
}
KIND_NAMES = {number: name.capitalize() for name, number in KINDS.items()}
KIND_NAMES[lib.MMC_NODE_BARRIER] = "node_barrier"
TRANSPORT_VERBS = lib.MMC_TRANSPORT_VERBS

# What runs operations, by C's number.
RUNNER_KINDS = {
    lib.MMC_RUNNER_HOST: "host",
    lib.MMC_RUNNER_PROXY: "proxy",
    lib.MMC_RUNNER_FIRMWARE: "firmware",
}


# What a node stream counts: the names in stats(), in the order of struct
# mmc_node_counts.
NODE_COUNTERS = (
    "node_operations",
    "node_pieces",
    "node_tx_bytes",
    "node_rx_bytes",
    "node_cross_bytes",
    "node_sleeps",
)


def wire_version() -> int:
    """Return the version of the protocol, which must be the same on all ranks."""
    return lib.mmc_wire_version()


def check_fault(fault: str) -> None:
    """Raise ValueError, with the reason, unless `fault` is a valid FAULT setting."""
    if lib.mmc_fault_check(fault.encode()) != 0:
        raise ValueError(last_error())


def counter_names() -> list[str]:
    """Return the names of all counters."""
    return [*_network_counters(), *NODE_COUNTERS]


def _network_counters() -> list[str]:
    """Return the names of a stream's and a team's counters, in the order of C."""
    count = lib.mmc_counter_count()
    return [string(lib.mmc_counter_name(index)) for index in range(count)]


def string(text: CData) -> str:
    """Return a C string as Python's."""
    return bytes(ffi.string(text)).decode(errors="replace")


def last_error() -> str:
    """Return the C library's reason for this thread's last error; "" for none."""
    return string(lib.mmc_last_error())


class PortTakenError(TransportError):
    """Another program on this host has the multicast groups' port to itself."""


def check(status: int, what: str) -> None:
    """Raise an error if `status`, which a C function returned, is negative.

    Operations have errors of their own; see `failure`.

    Parameters
    ----------
    status
        The function's result.
    what
        The words with which the error's text begins, such as what has failed.
    """
    if status >= 0:
        return
    text = f"{what}: {string(lib.mmc_strerror(status))}"
    more = last_error()
    kind = PortTakenError if status == -lib.MMC_EADDRINUSE else TransportError
    raise kind(f"{text} ({more})" if more else text)


def counters(read: Callable[[CData, CData], None], owner: CData) -> Counter[str]:
    """Return all counters of a stream or team by name.

    Parameters
    ----------
    read
        The C function that writes the counters of `owner` to an array.
    owner
        The stream or team.
    """
    names = _network_counters()
    values = ffi.new("uint64_t[]", len(names))
    read(owner, values)
    return Counter(dict(zip(names, map(int, values), strict=True)))


def nanoseconds(seconds: float) -> int:
    """Return a time limit as C takes it, for which 0 means that there is no limit."""
    return 0 if seconds == float("inf") else int(seconds * 1e9)
